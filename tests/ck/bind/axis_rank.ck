# An axis that the input does not have.
# run: --passes=bind --dim n=2 --dim x.1=3
# error: --dim x.1=3: axis out of range: input 'x' has rank 1
graph @f {
	input %x: f32[n]
}
