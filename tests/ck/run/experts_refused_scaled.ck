# A product that no kernel of experts computes would copy a matrix for each row.
# run: --passes=canon
# error: node 'm' (gather): copies a matrix of parameter 'w' (2.0 MiB) for each index, 128.0 MiB in all, for product 'y': the product is scaled; try: matmul(x, w[index])
graph @f {
	input %i: i64[512]
	param %x: f32[512,1,256]
	param %w: f32[8,256,256]
	%m = gather %w, %i {axis=0}
	%y output = matmul %x, %m {alpha=0.5}
}
