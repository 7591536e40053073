# What is no mark of a value is not passed over.
# run: --passes=none
# error: mark.ck:5: expected end of line, found 'forzen'
graph @f {
	param %w: f32[2,4] forzen
	%y = neg %w
}
