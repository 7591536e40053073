# An expression must come out positive.
# run: --passes=bind --dim n=5
# error: dim 'n-5' of input 'x' would be 0
graph @f {
	input %x: f32[n,"n-5"]
}
