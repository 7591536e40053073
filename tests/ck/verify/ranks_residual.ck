# What is whole is not added to a summand: every rank would add it.
# run: --passes=none
# error: operand 1 is replicated and would be added to a partial sum on every rank
graph @f {
	ranks 2
	input %x: f32[4,6]
	param %v: f32[4,3] placement 1 [6]
	param %w: f32[3,6] placement 0 [6]
	%z: f32[4,6] placement partial = matmul %v, %w
	%a: f32[4,6] placement partial = add %z, %x
	%y: f32[4,6] = all_reduce %a
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
