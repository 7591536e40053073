# Forward nodes come before all others.
# run: --passes=none
# error: node 2 (neg): forward after the backward phase has begun
graph @f {
	input %x: f32[2]
	%y = exp %x @backward
	%z = neg %x
}
