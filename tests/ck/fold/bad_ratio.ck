# A dropout ratio is a fraction.
# run: --passes=fold
# error: node '/D' (Dropout): the ratio is not in [0, 1)
graph @f {
	input %x: f32[2]
	const %r: f32[] = {1.5}
	%y output = dropout %x, %r from "/D" Dropout
}
