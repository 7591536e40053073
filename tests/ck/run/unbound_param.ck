# A parameter whose extents are not known is not bound.
# run: --passes=fold
# error: pass fold must run after bind
graph @f {
	input %x: f32[2,4]
	param %b: f32[n]
	%y output = add %x, %b
}
