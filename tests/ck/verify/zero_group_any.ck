# Groups of a number that is known only when a run begins are not.
# run: --passes=none
# error: zero_group 2: expected a divisor of an exact number of replicas, found replicas 4
graph @f {
	replicas 4
	zero_group 2
	input %x: f32[4]
	%y: f32[4] output = neg %x
}
