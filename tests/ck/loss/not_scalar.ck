# An output that is no scalar cannot be the loss itself.
# run: --passes=loss --loss y
# error: output 'y' cannot be the loss: expected a float scalar, found f32[2,3]
graph @f {
	input %x: f32[2,3]
	%y output = tanh %x
}
