# A fixed extent is not changed.
# run: --passes=bind --dim x.0=3 --dim n=4
# error: --dim x.0=3: axis 0 of input 'x' is 2, not 3
graph @f {
	input %x: f32[2,n]
}
