# A value that no node writes cannot be read.
# run: --passes=none
# error: node 1 (neg, value x): operand 0 is written by no node
graph @f {
	gone %x: f32[2]
	%y = neg %x
}
