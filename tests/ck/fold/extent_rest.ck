# Linear ops alone make a multiple of the batch and a constant.  A bound, which
# another batch reaches, stays an op, though these three sizes are below it; so
# does a root, though 1 is all that it is of one sample, and the factor stays.
# run: --passes=bind,fold
# expect:
# graph @f {
# 	input %x: f32[batch=1,3]
# 	const %many: f32[] = {100}
# 	const %t17: f32[] = {1}
# 	%y: f32[] = reduce_sum %x {axes=[0,1], keepdims=0}
# 	%t16: f32[] = extent {dt=f32, value=1}
# 	%t18: f32[] = add %t16, %t17
# 	%a: f32[] = div %y, %t18
# 	%t19: f32[] = extent {dt=f32, value=1}
# 	%t21: f32[] = max %t19, %many
# 	%b: f32[] = div %a, %t21
# 	%t22: f32[] = sqrt %t19
# 	%s: f32[] output = mul %b, %t22
# }
graph @f {
	input %x: f32[batch=1,3]
	const %one: i64[] = {1}
	const %first: i64[] = {0}
	const %many: f32[] = {100}
	%e = shape %x
	%i = gather %e, %first
	%j = add %i, %one
	%n = cast %j {to=f32}
	%y = reduce_sum %x {axes=[0,1], keepdims=0}
	%a = div %y, %n
	%c = cast %i {to=f32}
	%m = max %c, %many
	%b = div %a, %m
	%r = sqrt %c
	%s output = mul %b, %r
}
