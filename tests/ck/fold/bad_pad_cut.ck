# A pad cannot cut more than there is.
# run: --passes=fold
# error: node '/P' (Pad): cuts more than there is
graph @f {
	input %x: f32[2]
	const %p: i64[2] = {-3,3}
	%y output = pad %x, %p from "/P" Pad
}
