# The value to pad with is one number.
# run: --passes=fold
# error: node '/P' (Pad): the value to pad with is not one number
graph @f {
	input %x: f32[2]
	const %p: i64[2] = {0,1}
	const %v: f32[2] = {0,1}
	%y output = pad %x, %p, %v from "/P" Pad
}
