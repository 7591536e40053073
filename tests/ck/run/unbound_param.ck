# A parameter whose extents are not known is not bound.
# run: --passes=fold
# error: pass fold needs what bind gives
graph @f {
	input %x: f32[2,4]
	param %b: f32[n]
	%y output = add %x, %b
}
