# An expression must come out positive.
# run: --passes=bind --dim n=5
# error: dim 'n-5' of input 'x' evaluates to 0, which is out of range
graph @f {
	input %x: f32[n,"n-5"]
}
