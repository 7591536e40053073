# Updates would overwrite an output.
# run: --passes=none
# error: value 2 (w): is a parameter and an output: expected a copy of it as the output
graph @f {
	input %x: f32[4]
	param %w: f32[4] output
	%y: f32[4] = mul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0], keepdims=0}
	loss %loss
}
