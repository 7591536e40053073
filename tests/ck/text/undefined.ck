# A value is written before it is read.
# run: --passes=none
# error: undefined.ck:6: 'z' is not defined here
graph @f {
	input %x: f32[2]
	%y = add %x, %z
	%z = neg %x
}
