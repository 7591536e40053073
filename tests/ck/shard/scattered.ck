# The shape that a scatter_add makes is a rank's, where what it does not index is cut.
# run: --passes=shard --tp 2 --shard w=S1 --shard v=S0
graph @scattered {
	props canon loss
	input %x: f32[6,8]
	param %w: f32[8,64]
	param %v: f32[64,8]
	const %idx: i64[6] = {0,1,2,0,1,3}
	%y: f32[6,64] = matmul %x, %w
	%z: f32[4,64] = scatter_add %idx, %y {axis=0, shape=[4,64]}
	%o: f32[4,8] = matmul %z, %v
	%loss: f32[] output = reduce_sum %o {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %z: f32[4,32] placement 1 [64] = scatter_add %idx, %y {shape=[4,32]}
