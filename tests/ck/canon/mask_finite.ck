# A finite value where keys are hidden at run time: a query that sees none
# looks at all alike, so it gets the mean of the values.
# run: --passes=canon
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,4,3,8]
	input %v: f32[2,4,3,8]
	input %pad: bool[2,1,1,3]
	const %low: f32[] = {-3.4e38}
	const %tri: bool[3,3] = {0, 1, 1, 0, 0, 1, 0, 0, 0}
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%t = where %pad, %s, %low
	%u = where %tri, %low, %t
	%p = softmax %u {axis=3}
	%o output = matmul %p, %v
}
# expect:
# graph @f {
# 	input %q: f32[2,4,3,8]
# 	input %k: f32[2,4,3,8]
# 	input %v: f32[2,4,3,8]
# 	input %pad: bool[2,1,1,3]
# 	const %t13: bool[3,3] = {1, 0, 0, 1, 1, 0, 1, 1, 1}
# 	const %t19: f32[] = {0}
# 	%o.attention: f32[2,4,3,8], %o.attention.lse: f32[2,4,3] = attention %q, %k, %v, %pad {causal=1}
# 	%o.and: bool[2,1,3,3] = and %t13, %pad
# 	%o.cast: f32[2,1,3,3] = cast %o.and {to=f32}
# 	%o.reduce_max: f32[2,1,3,1] = reduce_max %o.cast {axes=[3]}
# 	%o.gt: bool[2,1,3,1] = gt %o.reduce_max, %t19
# 	%o.reduce_mean: f32[2,4,1,8] = reduce_mean %v {axes=[2]}
# 	%o: f32[2,4,3,8] output = where %o.gt, %o.attention, %o.reduce_mean
# }
