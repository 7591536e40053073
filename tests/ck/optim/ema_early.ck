# In backward an average stays behind its update, which goes behind the last reader of the
# parameter.
# run: --passes=optim --ema --update-in-backward on --optimizer sgd
# check: %dx: f32[4,4] output = matmul %dw, %w
# check: %w.next: f32[4,4] = sgd %w, %dw
# check: %sgd.ema.w.next: f32[4,4] = ema %sgd.ema.w, %w.next @update
graph @f {
	props canon loss bwd
	input %x: f32[4,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4,4] param %w = fill {shape=[4,4], value=1} @backward
	%dx: f32[4,4] output = matmul %dw, %w @backward
	loss %loss
}
