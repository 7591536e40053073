# A wish for what is not there is refused.
# run: --passes=precision --dtype bf16 --precision op:gelu=f32
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# error: --precision op:gelu=f32: there is no such op
