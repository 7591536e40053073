# Row indices are read: the valid rows come first.
# run: --passes=fold
# check: %i: i64[1,6], %i.count: i64[] = selected %x
# check-not: compact
# check: bool[6] = lt %t22, %i.count
# check: %s: f32[] output = reduce_sum
graph @f {
	input %x: f32[6]
	param %p: f32[6]
	const %all: i64[1] = {-1}
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	%i = nonzero %x
	%r = reshape %i, %all
	%g = gather %p, %r {axis=0}
	%n = size %r
	%k = range %zero, %n, %one
	%f = cast %k {to=f32}
	%y = mul %g, %f
	%s output = reduce_sum %y {keepdims=0}
}
