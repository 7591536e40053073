# What a constant picks in a sample's row is another element for each sample of
# this batch: there is none for those of another.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,5]
	param %w: f32[5]
	const %at: i64[3,2] = {0, 4, 1, 0, 2, 4}
	%y: f32[3,5] = mul %x, %w
	%own: f32[3] = gather_nd %y, %at
	%loss: f32[] output = reduce_sum %own {axes=[0], keepdims=0}
	loss %loss
}
# error: node 'own' (gather_nd): cannot split the batch over replicas: the op combines samples
