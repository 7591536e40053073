# A parameter has no piece that two ranks share: their gradients would differ.
# run: --passes=optim --optimizer sgd
# error: value pair: a shard of a parameter must belong to one rank
graph @f {
	ranks 4
	props canon loss bwd
	param %pair: f32[2,4] placement 1 [8] replication 2
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%g: f32[2,4] placement 1 [8] replication 2 param %pair = fill {shape=[2,4], value=1} @backward
	loss %loss
}
