# An output that is no scalar cannot be the loss itself.
# run: --passes=loss --loss y
# error: output 'y' is f32[2,3], expected a float scalar
graph @f {
	input %x: f32[2,3]
	%y output = tanh %x
}
