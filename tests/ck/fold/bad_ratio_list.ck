# A dropout ratio is one number.
# run: --passes=fold
# error: node '/D' (Dropout): the ratio is not a scalar
graph @f {
	input %x: f32[2]
	const %r: f32[2] = {0,1}
	%y output = dropout %x, %r from "/D" Dropout
}
