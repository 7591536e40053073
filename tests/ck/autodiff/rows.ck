# A batch times one matrix: the matrix' gradient is one product of all rows.
# run: --passes=autodiff
graph @f {
	input %x: f32[2,3,4]
	param %w: f32[1,4,5]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	param %w: f32[1,4,5]
# 	%y: f32[2,3,5] = matmul %x, %w
# 	%loss: f32[] output = reduce_sum %y {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.y: f32[2,3,5] adjoint %y = expand %d.loss {shape=[2,3,5]} @backward
# 	%t7: f32[6,4] = reshape %x {shape=[6,4]} @backward
# 	%t8: f32[6,5] = reshape %d.y {shape=[6,5]} @backward
# 	%t9: f32[4,5] = matmul %t7, %t8 {ta=1} @backward
# 	%d.w: f32[1,4,5] param %w adjoint %w = reshape %t9 {shape=[1,4,5]} @backward
# 	loss %loss
# }
