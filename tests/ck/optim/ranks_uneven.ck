# Adjoints are zero where a last piece is short; a fill with ones is not.
# run: --passes=optim --optimizer sgd
# error: node fill, value g: placement does not follow from the operands: expected replicated, found sharded along dim 0 of extent 5
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[3] placement 0 [5]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%g: f32[3] placement 0 [5] param %w = fill {shape=[3], value=1} @backward
	loss %loss
}
