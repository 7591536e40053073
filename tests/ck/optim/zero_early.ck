# A parameter is overwritten behind its last reader in backward, not sooner.
# run: --passes=optim --dp 2 --zero 1 --update-in-backward on --optimizer sgd
# check: = reduce_scatter %dw {axis=1, segment=[16], group=1} @backward
# check: = sgd %w.own, %dw.sum
# check: %dx: f32[4,4] output = matmul %dw, %w
# check: = gather_into %w, %w.own.next
graph @f {
	replicas 2 exactly
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
