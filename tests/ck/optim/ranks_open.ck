# The gradient of a parameter in state I is complete; nothing adds it up.
# run: --passes=optim
# error: value dw: a gradient is complete before it is applied: it is a summand, expected whole
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[4]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4] split p param %w = fill {shape=[4], value=1} @backward
	loss %loss
}
