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
# expect:
# graph @f {
# 	param %w: f32[8,4]
# 	input %x: f32[2,3,4]
# 	%p.slice: f32[3,4] = slice %w {start=[2,0], step=[1,1]}
# 	%p: f32[1,3,4] = reshape %p.slice {shape=[1,3,4]}
# 	%s: f32[2,3,4] = add %x, %p
# 	%y.slice: f32[2,1,4] = slice %s {start=[0,2,0], step=[1,1,1]}
# 	%y: f32[2,4] output = reshape %y.slice {shape=[2,4]}
# }
