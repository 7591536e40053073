# One table read by rows and as a product: the transpose is a flag.
# run: --passes=canon
graph @f {
	input %i: i64[2,3]
	param %w: f32[7,4]
	%x = gather %w, %i
	%wt = transpose %w {perm=[1,0]}
	%y output = matmul %x, %wt
}
# expect:
# graph @f {
# 	input %i: i64[2,3]
# 	param %w: f32[7,4]
# 	%x: f32[2,3,4] = gather %w, %i
# 	%y.reshape: f32[6,4] = reshape %x {shape=[6,4]}
# 	%y.matmul: f32[6,7] = matmul %y.reshape, %w {tb=1}
# 	%y: f32[2,3,7] output = reshape %y.matmul {shape=[2,3,7]}
# }
