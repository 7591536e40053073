# Of a replica's shard the average is a shard, too.
# run: --passes=optim --ema --dp 2 --zero 1 --optimizer sgd
# check: state %sgd.ema.w: f32[1,8] param %w state ema
# check: %w.own.next: f32[1,8] shard [4,4] = sgd %w.own, %dw.sum, %grad_norm
# check: = gather_into %w, %w.own.next
# check: = ema %sgd.ema.w, %w.own.next @update
graph @f {
	replicas 2 exactly
	props canon loss bwd
	input %x: f32[4,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[4,4] param %w = fill {shape=[4,4], value=1} @backward
	loss %loss
}
