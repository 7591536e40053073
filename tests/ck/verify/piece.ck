# A replica's piece is as long as its value says.
# run: --passes=none
# error: value 2 (s): shape does not match the shard of a replica
graph @f {
	replicas 2 exactly
	param %w: f32[7,10]
	state %s: f32[1,34] param %w state m shard [7,10]
}
