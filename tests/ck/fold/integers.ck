# Integer arithmetic is exact and follows C and Python where ops.h says so.
# run: --passes=fold
# expect:
# graph @f {
# 	const %div: i64[4] output = {3, -3, -3, 3}
# 	const %mod: i64[4] output = {1, 1, -1, -1}
# 	const %fmod: i64[4] output = {1, -1, 1, -1}
# 	const %wrap: i64[2] output = {-2, -9223372036854775806}
# 	const %pow: i64[4] output = {49, 49, 49, 49}
# 	const %bytes: u8[2] output = {4, 13}
# 	const %max: i64[4] output = {7, 2, 7, -2}
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
