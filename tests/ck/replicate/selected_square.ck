# The number of a sample picks a row, its own, and a column, another one in the
# whole batch.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,4]
	input %m: bool[4]
	param %w: f32[4]
	%at: i64[1,4], %count: i64[] = selected %m {compact=0}
	%i: i64[4,1] = transpose %at {perm=[1,0]}
	%ii: i64[4,2] = concat %i, %i {axis=1}
	%y: f32[4,4] = mul %x, %w
	%own: f32[4] = gather_nd %y, %ii
	%loss: f32[] output = reduce_sum %own {axes=[0], keepdims=0}
	loss %loss
}
# error: node 'own' (gather_nd): cannot split the batch over replicas: it computes with sample indices
