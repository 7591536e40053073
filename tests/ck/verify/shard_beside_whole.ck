# What micro-batches add up is of one replica, or of all: not a shard so far and a whole gradient.
# run: --passes=none
# error: is no shard of the form of s
graph @f {
	replicas 2 exactly
	props bound static canon loss
	input %x: f32[1,35]
	param %w: f32[7,10]
	state %s: f32[1,35] param %w state grad shard [7,10]
	%a: f32[1,35] shard [7,10] = accumulate %s, %x @backward
}
