# One table read by rows and as a product: the transpose is a flag.
# run: --passes=canon
graph @f {
	input %i: i64[2,3]
	param %w: f32[7,4]
	%x = gather %w, %i
	%wt = transpose %w {perm=[1,0]}
	%y output = matmul %x, %wt
}
