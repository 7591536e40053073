# A shape that depends on contents is refused with the reason.
# run: --passes=fold
# error: node '/r1' (Reshape): operand 1 must be constant: it depends on the contents of 'n'
# stderr: and 1 more like this
graph @f {
	input %x: f32[4]
	input %n: i64[1]
	%s = add %n, %n from "/Add" Add
	%y output = reshape %x, %s from "/r1" Reshape
	%z output = reshape %x, %s from "/r2" Reshape
}
