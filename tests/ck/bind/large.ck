# An input has a number of elements that can be counted.
# run: --passes=bind --dim n=2147483647
# error: input 'x' is too large
graph @f {
	input %x: f32[n,n,n]
}
