# Rows of a table of several dims that a product takes as rows of one matrix are
# no matrices, whatever their size.
# run: --passes=canon
# stderr: node 'm' (gather): copies rows of parameter 'w' (2.0 MiB) for each index, 128.0 MiB in all; only matmul(x, w[index]) of w [experts, K, N] needs no copies
graph @f {
	input %i: i64[512]
	param %x: f32[65536,2]
	param %w: f32[8,256,256]
	%m = gather %w, %i {axis=0}
	%r: f32[512,65536] = reshape %m {shape=[512,65536]}
	%y output = matmul %r, %x
}
# check: = matmul
