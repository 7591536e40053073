# A number that the file computes from the size of the batch and that data meet
# is no constant: 12 elements of 4 samples grow with the batch, what follows
# from other extents does not.  Operands that say shapes are attributes as ever.
# run: --passes=bind,fold
# expect:
# graph @f {
# 	input %x: f32[4,3]
# 	const %w: f32[] = {3}
# 	%y: f32[] = reduce_sum %x {axes=[0,1], keepdims=0}
# 	%t12: f32[] = extent {dt=f32, value=12}
# 	%z: f32[] = mul %y, %t12
# 	%s: f32[] output = mul %z, %w
# }
graph @f {
	input %x: f32[4,3]
	const %one: i64[] = {1}
	%i = size %x
	%n = cast %i {to=f32}
	%e = shape %x
	%j = gather %e, %one
	%w = cast %j {to=f32}
	%r = reshape %x, %e
	%y = reduce_sum %r {axes=[0,1], keepdims=0}
	%z = mul %y, %n
	%s output = mul %z, %w
}
