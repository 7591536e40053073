# Constant, evenly spaced indices are a slice: rows of a position table.
# run: --passes=canon
graph @f {
	param %w: f32[8,4]
	input %x: f32[2,3,4]
	const %i: i64[1,3] = {2, 3, 4}
	const %j: i64[] = {-1}
	%p = gather %w, %i {axis=0}
	%s = add %x, %p
	%y output = gather %s, %j {axis=1}
}
