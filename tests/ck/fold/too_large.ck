# So is a result whose bytes no 64-bit number counts.
# run: --passes=none
# run:
# error: output 0 'y': f32[1073741824,1073741824,2147483648] is too large
graph @f {
	input %x: f32[1073741824,1,2147483648]
	input %z: f32[1073741824,1]
	%y = add %x, %z
}
