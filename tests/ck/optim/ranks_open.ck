# The gradient of a parameter in state I is complete; nothing adds it up.
# run: --passes=optim
# error: value dw: the gradient must be complete before the update: expected replicated, found partial
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[4]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4] placement partial param %w = fill {shape=[4], value=1} @backward
	loss %loss
}
