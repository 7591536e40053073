# A value with a complete adjoint that a rank's part of the work reads: backward would not add up what the ranks find.
# run: --passes=none
# error: node matmul, value h: an operand of a sharded op has placement I, so its gradient would be incomplete: a replicate op is missing
graph @f {
	ranks 2
	input %x: f32[4,6]
	param %s: f32[6]
	param %w: f32[6,4] placement 1 [8]
	%xs = mul %x, %s
	%h placement 1 [8] = matmul %xs, %w
	%l placement partial = reduce_sum %h {axes=[0,1], keepdims=0}
	%loss output = all_reduce %l
	loss %loss
}
