# A finite value where keys are hidden at run time: a query that sees none
# looks at all alike, which only a sum keeps.
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
# 	const %t14: f32[] = {-3.4e+38}
# 	const %t15: f32[] = {0}
# 	%o.where: f32[2,1,1,3] = where %pad, %t15, %t14
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %k, %v, %o.where {causal=1}
# }
