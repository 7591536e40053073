# Two ranks that hold the same piece of a parameter would both update it, by sums that either has alone.
# run: --passes=none
# error: a shard of a parameter must belong to one rank
graph @f {
	ranks 2
	input %x: f32[4,6]
	param %w: f32[6,4] placement 1 [4] replication 2
	%z: f32[4,4] placement 1 [4] replication 2 = matmul %x, %w
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
