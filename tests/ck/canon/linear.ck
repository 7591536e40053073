# A linear layer on rows of a 3-D input: transposed weight, bias added behind.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4]
	param %w: f32[8,4]
	param %b: f32[8]
	%wt = transpose %w {perm=[1,0]}
	%p = matmul %x, %wt
	%y output = add %b, %p
}
