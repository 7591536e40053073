# What is between replicas with the same samples needs some.
# run: --passes=none
# error: is between ranks of group 7, which the graph does not declare
graph @f {
	replicas 2 exactly
	input %x: f32[4]
	%y = all_reduce %x {group=7}
}
