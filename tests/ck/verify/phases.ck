# Forward nodes come before all others.
# run: --passes=none
# error: node 2 (neg): forward node after the start of the backward phase
graph @f {
	input %x: f32[2]
	%y = exp %x @backward
	%z = neg %x
}
