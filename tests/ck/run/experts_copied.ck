# A warning names copies of matrices of more than 64 MiB, and of more matrices than
# there are.
# run: --passes=canon
# stderr: node 'y' (gather): copies matrices of parameter 'w' of 2.0 MiB, one for each index: 128.0 MiB
graph @f {
	input %i: i64[512]
	param %w: f32[8,256,256]
	%y output = gather %w, %i {axis=0}
}
# check: %y: f32[512,256,256] output = gather
