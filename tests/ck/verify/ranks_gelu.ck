# A sum over ranks belongs before what is not linear.
# run: --passes=none
# error: operand 0 is a partial sum, but the op is not linear in it
graph @f {
	ranks 2
	param %v: f32[4,3] placement 1 [6]
	param %w: f32[3,6] placement 0 [6]
	%z: f32[4,6] placement partial = matmul %v, %w
	%a: f32[4,6] placement partial = gelu %z
	%y: f32[4,6] = all_reduce %a
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
