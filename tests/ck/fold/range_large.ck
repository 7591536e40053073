# What must be static and is too large is said to be so.
# run: --passes=bind,fold
# error: its result exceeds
graph @f {
	const %a: i64[] = {0}
	const %b: i64[] = {1099511627776}
	const %c: i64[] = {1}
	%r = range %a, %b, %c
	%s: f32 = cast %r {to=f32}
	%y output = reduce_sum %s
}
