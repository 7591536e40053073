# The side of what is whole (0: I, 1: R) is a number, not a type.
# run: --passes=none
graph @f {
	ranks 2
	input %x: f32[4,6]
	param %w: f32[6,4] split 1 [8]
	%h split 1 [8] = matmul %x, %w
	%sum split p = reduce_sum %h {axes=[1], keepdims=1}
	%all split r = all_reduce %sum {side=1}
	%whole split r = all_gather %h {axis=1, lead=1, part=[8], side=1}
	%y output split r = mul %whole, %all
}
# check: = all_reduce %sum {side=1}
# check: = all_gather %h {axis=1, lead=1, part=[8], side=1}
