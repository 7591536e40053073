# A number for every sample that follows from the batch is no constant either:
# 1 / n of 4 samples, expanded.  What other extents give is a constant.
# run: --passes=bind,fold
# expect:
# graph @f {
# 	input %x: f32[batch=4,3]
# 	const %one: f32[] = {1}
# 	const %width.2.2: f32[] = {3}
# 	%rows: f32[4] = reduce_sum %x {axes=[1], keepdims=0}
# 	%t18: f32[] = extent {dt=f32, value=4}
# 	%t20: f32[] = div %one, %t18
# 	%t21: f32[1] = reshape %t20 {shape=[1]}
# 	%a: f32[4] = mul %rows, %t21
# 	%b: f32[4] = mul %a, %width.2.2
# 	%s: f32[] output = reduce_sum %b {axes=[0], keepdims=0}
# }
graph @f {
	input %x: f32[batch=4,3]
	const %first: i64[] = {0}
	const %second: i64[] = {1}
	const %one: f32[] = {1}
	%e = shape %x
	%i = gather %e, %first
	%n = cast %i {to=f32}
	%inverse = div %one, %n
	%to = reshape %i {shape=[1]}
	%each = expand %inverse, %to
	%j = gather %e, %second
	%m = cast %j {to=f32}
	%width = expand %m, %to
	%rows = reduce_sum %x {axes=[1], keepdims=0}
	%a = mul %rows, %each
	%b = mul %a, %width
	%s output = reduce_sum %b {axes=[0], keepdims=0}
}
