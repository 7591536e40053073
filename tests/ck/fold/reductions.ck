# Axes are sorted and non-negative; over single elements nothing is reduced.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,1,3]
# 	%a: f32[1] output = reduce_sum %x {axes=[0,2], keepdims=0}
# 	%b: f32[1,1,1] output = reduce_mean %x {axes=[0,1,2]}
# 	%c: f32[2,3] output = reshape %x {shape=[2,3]}
# 	%d: f32[2,1,3] output = copy %x
# }
graph @f {
	input %x: f32[2,1,3]
	const %axes: i64[2] = {-1,0}
	const %one: i64[1] = {1}
	%a output = reduce_sum %x, %axes {keepdims=0}
	%b output = reduce_mean %x
	%c output = reduce_max %x, %one {keepdims=0}
	%d output = reduce_sum %x {noop=1}
}
