# A tile is a broadcast between two reshapes; of a constant it is folded.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,1,3]
# 	const %t9: f32[4] = {1, 2, 1, 2}
# 	%t7: f32[1,2,1,3] = reshape %x {shape=[1,2,1,3]}
# 	%t8: f32[2,2,4,3] = expand %t7 {shape=[2,2,4,3]}
# 	%y: f32[4,4,3] output = reshape %t8 {shape=[4,4,3]}
# 	%z: f32[4] output = copy %t9
# }
graph @f {
	input %x: f32[2,1,3]
	const %r: i64[3] = {2,4,1}
	const %c: f32[2] = {1,2}
	const %two: i64[1] = {2}
	%y output = tile %x, %r
	%z output = tile %c, %two
}
