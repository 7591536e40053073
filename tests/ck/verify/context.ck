# The replicas that share positions are an exact part of all.
# run: --passes=none
# error: context 2: expected a divisor of an exact number of replicas, found replicas 3 exactly
graph @f {
	replicas 3 exactly
	context 2
	param %w: f32[2]
	%y = neg %w
}
