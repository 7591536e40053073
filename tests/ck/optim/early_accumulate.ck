# Updating at once and collecting several micro-batches exclude each other.
# run: --passes=optim --update-in-backward on --grad-accum 2
# error: --update-in-backward and --grad-accum cannot be combined
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
