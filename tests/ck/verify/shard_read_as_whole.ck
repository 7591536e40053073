# A replica's shard of a matrix is no matrix.
# run: --passes=none
# error: w is a replica's shard, which only a gather can make whole
graph @f {
	replicas 2 exactly
	input %x: f32[3,1]
	param %w: f32[1,35] shard [7,10]
	%y: f32[3,35] = matmul %x, %w
}
