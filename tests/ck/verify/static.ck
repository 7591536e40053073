# Claimed properties are checked.
# run: --passes=none
# error: value s): operand 1 must be an attribute in a static graph
graph @f {
	props static
	input %x: f32[6]
	const %s: i64[2] = {2, 3}
	%y = reshape %x, %s
}
