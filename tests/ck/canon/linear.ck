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
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	param %w: f32[8,4]
# 	param %b: f32[8]
# 	%p.reshape: f32[6,4] = reshape %x {shape=[6,4]}
# 	%y.matmul: f32[6,8] = matmul %p.reshape, %w, %b {tb=1}
# 	%y: f32[2,3,8] output = reshape %y.matmul {shape=[2,3,8]}
# }
