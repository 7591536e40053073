# A size is positive and of a sensible magnitude.
# run: --passes=bind --dim n=4294967296 --dim m=1
# error: --dim n: size 4294967296 is not between 1 and 2147483648
graph @f {
	input %x: f32[n,m]
}
