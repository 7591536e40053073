# A warning names copies of more than 64 MiB that no product reads, such as rows of
# an embedding of several dims.
# run: --passes=canon
# stderr: node 'y' (gather): copies rows of parameter 'w' (2.0 MiB) for each index, 128.0 MiB in all; only matmul(x, w[index]) of w [experts, K, N] needs no copies
graph @f {
	input %i: i64[512]
	param %w: f32[8,256,256]
	%y output = gather %w, %i {axis=0}
}
# check: %y: f32[512,256,256] output = gather
