# One-hot vectors need an off and an on value.
# run: --passes=fold
# error: node '/O' (OneHot): expected two values, off and on
graph @f {
	input %x: i64[2]
	const %d: i64[] = {3}
	const %v: f32[3] = {0,1,2}
	%y output = one_hot %x, %d, %v from "/O" OneHot
}
