# Groups of replicas are all of a size.
# run: --passes=none
# error: expert_group 3: expected a divisor of an exact number of replicas, found replicas 4 exactly
graph @f {
	replicas 4 exactly
	expert_group 3
	input %x: f32[4]
	%y: f32[4] output = neg %x
}
