# The shards of two parameters have one shape; the whole is that of the one that is gathered.
# run: --passes=none
# error: is not the whole of shard w
graph @f {
	replicas 2 exactly
	param %w: f32[1,35] shard [7,10]
	%y: f32[10,7] = gather_pieces %w {axis=1, segment=[70], shape=[10,7]}
}
