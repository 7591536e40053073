# Matrices lie along another dim.
# run: --passes=canon
# error: node 'm' (gather): copies a matrix of parameter 'w' (2.0 MiB) for each index, 128.0 MiB in all, for product 'y': the index does not select along dim 0; try: matmul(x, w[index])
graph @f {
	input %i: i64[512]
	param %x: f32[512,1,256]
	param %w: f32[256,8,256]
	%m = gather %w, %i {axis=1}
	%t = transpose %m {perm=[1,0,2]}
	%y output = matmul %x, %t
}
