# A trained parameter is not a summand on each rank.
# run: --passes=optim
# error: value w: inputs, parameters and outputs cannot be partial sums: expected replicated, found partial
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[4] placement partial
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4] param %w = fill {shape=[4], value=1} @backward
	loss %loss
}
