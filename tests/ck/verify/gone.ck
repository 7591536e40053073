# A value that no node writes cannot be read.
# run: --passes=none
# error: node 1 (neg, value x): no node writes operand 0
graph @f {
	gone %x: f32[2]
	%y = neg %x
}
