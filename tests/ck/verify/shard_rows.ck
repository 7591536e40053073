# The rows that a replica has of a whole have its other dims.
# run: --passes=none
# error: shape does not match the shard of a replica
graph @f {
	replicas 2 exactly
	param %w: f32[2,3,4] shard [6,3,4] rows
	%y: f32[2,3,4] = neg %w
}
