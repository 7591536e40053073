# Integer arithmetic is exact and follows C and Python where ops.h says so.
# run: --passes=fold
# expect:
# graph @f {
# 	const %t14: i64[4] = {3, -3, -3, 3}
# 	const %t16: i64[4] = {1, 1, -1, -1}
# 	const %t18: i64[4] = {1, -1, 1, -1}
# 	const %t20: i64[2] = {-2, -9223372036854775806}
# 	const %t22: i64[4] = {49, 49, 49, 49}
# 	const %t24: u8[2] = {4, 13}
# 	const %t26: i64[4] = {7, 2, 7, -2}
# 	%div: i64[4] output = copy %t14
# 	%mod: i64[4] output = copy %t16
# 	%fmod: i64[4] output = copy %t18
# 	%wrap: i64[2] output = copy %t20
# 	%pow: i64[4] output = copy %t22
# 	%bytes: u8[2] output = copy %t24
# 	%max: i64[4] output = copy %t26
# }
graph @f {
	const %a: i64[4] = {7,-7,7,-7}
	const %b: i64[4] = {2,2,-2,-2}
	const %big: i64[2] = {9223372036854775807,4611686018427387905}
	const %two: i64[] = {2}
	const %u: u8[2] = {250,3}
	const %five: u8[] = {10}
	%div output = div %a, %b
	%mod output = mod %a, %b
	%fmod output = mod %a, %b {fmod=1}
	%wrap output = mul %big, %two
	%pow output = pow %a, %two
	%bytes output = add %u, %five
	%max output = max %a, %b
}
