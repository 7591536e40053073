# An index near the end of the 64-bit integers is out of range like any other.
# run: --passes=bind,fold
# error: index out of range
graph @f {
	input %x: f32[4,2]
	const %i: i64[2] = {9223372036854775806,9223372036854775807}
	%y output = gather %x, %i {axis=0}
}
