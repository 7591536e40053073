# What exporters write as shape arithmetic is gone once dims are bound.
# run: --passes=bind,fold
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	%r: f32[6,4] = reshape %x {shape=[6,4]}
# 	%y: f32[6,4] output = neg %r
# }
graph @f {
	input %x: f32[2,3,4]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %axis: i64[1] = {0}
	const %rest: i64[1] = {-1}
	%s = shape %x
	%a = gather %s, %zero
	%b = gather %s, %one
	%ab = mul %a, %b
	%n = unsqueeze %ab, %axis
	%to = concat %n, %rest
	%r = reshape %x, %to
	%y output = neg %r
}
