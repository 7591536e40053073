# A pad cannot cut more than there is.
# run: --passes=fold
# error: node '/P' (Pad): negative padding removes more elements than the dim has
graph @f {
	input %x: f32[2]
	const %p: i64[2] = {-3,3}
	%y output = pad %x, %p from "/P" Pad
}
