# Consecutive constant indices take a slice, whole rows repeat.
# run: --passes=fold
# expect:
# graph @f {
# 	param %w: f32[8,4] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
# 	input %x: f32[2,5,3]
# 	const %odd: i64[2] = {0, 2}
# 	%t9: f32[3,4] = slice %w {start=[0,0], step=[1,1]}
# 	%t10: f32[1,3,4] = reshape %t9 {shape=[1,3,4]}
# 	%a: f32[2,3,4] output = expand %t10 {shape=[2,3,4]}
# 	%t11: f32[2,1,3] = slice %x {start=[0,4,0], step=[1,1,1]}
# 	%b: f32[2,3] output = reshape %t11 {shape=[2,3]}
# 	%c: f32[2,4] output = gather %w, %odd
# }
graph @f {
	param %w: f32[8,4] = splat 0
	input %x: f32[2,5,3]
	const %pos: i64[2,3] = {0,1,2,0,1,2}
	const %last: i64[] = {-1}
	const %odd: i64[2] = {0,2}
	%a output = gather %w, %pos
	%b output = gather %x, %last {axis=1}
	%c output = gather %w, %odd
}
