# A transposition without a list reverses the axes; a slice that begins beyond
# the end begins at the end, on whichever side that is.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	input %y: f32[5]
# 	%a: f32[4,3,2] output = transpose %x {perm=[2,1,0]}
# 	%b: f32[5] output = slice %y {start=[4], step=[-1]}
# 	%c: f32[2] output = slice %y {start=[4], step=[-1]}
# 	%d: f32[3] output = slice %y {start=[0], step=[2]}
# }
graph @f {
	input %x: f32[2,3,4]
	input %y: f32[5]
	const %nine: i64[1] = {9}
	const %far: i64[1] = {-9}
	const %first: i64[1] = {-9223372036854775808}
	const %axis: i64[1] = {0}
	const %back: i64[1] = {-1}
	const %two: i64[1] = {2}
	%a output = transpose %x
	%b output = slice %y, %nine, %first, %axis, %back
	%c output = slice %y, %nine, %two, %axis, %back
	%d output = slice %y, %far, %nine, %axis, %two
}
