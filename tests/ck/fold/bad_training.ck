# The training mode is one value.
# run: --passes=fold
# error: node '/D' (Dropout): training_mode is not a scalar
graph @f {
	input %x: f32[2]
	const %r: f32[] = {0.5}
	const %t: bool[2] = {0,1}
	%y output = dropout %x, %r, %t from "/D" Dropout
}
