# A sum of two products of one row is a residual: neither row is the other's
# bias, as they are the sample's own.
# run: --passes=canon
# check: matmul %x, %a
# check: matmul %x, %b
# check: add
graph @f {
	input %x: f32[1,4]
	param %a: f32[4,3]
	param %b: f32[4,3]
	%y = matmul %x, %a
	%z = matmul %x, %b
	%o output = add %y, %z
}
