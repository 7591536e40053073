# A row of a parameter for each place in the batch: of two replicas' samples each
# would have another one.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,5]
	param %w: f32[3,5]
	const %rows: i64[3,1] = {0, 1, 2}
	%j: i64[3,1] = argmax %x {axis=1}
	%at: i64[3,2] = concat %rows, %j {axis=1}
	%own: f32[3] = gather_nd %w, %at
	%loss: f32[] output = reduce_sum %own {axes=[0], keepdims=0}
	loss %loss
}
# error: node 'own' (gather_nd): cannot split the batch over replicas: it computes with sample indices, which each part of the batch counts from 0
