# Expressions of dims that overflow have no value.
# run: --passes=bind --dim n=2147483648
# error: is not bound
graph @f {
	input %x: f32["0-n*n*2-n*n*2"]
	%y output = exp %x
}
