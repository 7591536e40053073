# The loss is a scalar of a float type, if it is said to be one.
# run: --passes=none
# error: value 1 (x): the loss is not a scalar
graph @f {
	props loss
	input %x: f32[4]
	loss %x
}
