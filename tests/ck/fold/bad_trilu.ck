# The diagonal of trilu is one number.
# run: --passes=fold
# error: node '/T' (Trilu): k is not a scalar
graph @f {
	input %x: f32[2,2]
	const %k: i64[2] = {0,1}
	%y output = trilu %x, %k from "/T" Trilu
}
