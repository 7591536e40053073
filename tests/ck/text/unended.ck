# Text that stops is an error, not a smaller graph.
# run: --passes=none
# error: unended.ck:7: expected '}', found end of file
graph @f {
	input %x: f32[2,4]
	%y = neg %x
