# The side of what is whole (0: I, 1: R) is a number, not a type.
# run: --passes=none
graph @f {
	ranks 2
	input %x: f32[4,6]
	param %w: f32[6,4] placement 1 [8]
	%h placement 1 [8] = matmul %x, %w
	%sum placement partial = reduce_sum %h {axes=[1], keepdims=1}
	%all placement replicate_partial = all_reduce %sum {side=1}
	%whole placement replicate_partial = all_gather %h {axis=1, first_axis=1, segment=[8], side=1}
	%y output placement replicate_partial = mul %whole, %all
}
# check: = all_reduce %sum {side=1}
# check: = all_gather %h {axis=1, first_axis=1, segment=[8], side=1}
