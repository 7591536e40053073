# The value to pad with is one number.
# run: --passes=fold
# error: node '/P' (Pad): the padding value is not a scalar
graph @f {
	input %x: f32[2]
	const %p: i64[2] = {0,1}
	const %v: f32[2] = {0,1}
	%y output = pad %x, %p, %v from "/P" Pad
}
