# A gradient is not cut where its parameter is whole.
# run: --passes=optim
# error: the gradient must be complete before the update: expected replicated, found sharded along dim 0 of extent 8
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[4]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4] placement 0 [8] param %w = fill {shape=[4], value=1} @backward
	loss %loss
}
