# Key and value heads repeated for groups of query heads are not repeated.
# run: --passes=canon
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,2,3,8]
	input %v: f32[2,2,3,8]
	%k5 = reshape %k {shape=[2,2,1,3,8]}
	%ke = expand %k5 {shape=[2,2,2,3,8]}
	%k4 = reshape %ke {shape=[2,4,3,8]}
	%v5 = reshape %v {shape=[2,2,1,3,8]}
	%ve = expand %v5 {shape=[2,2,2,3,8]}
	%v4 = reshape %ve {shape=[2,4,3,8]}
	%kt = transpose %k4 {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%p = softmax %s {axis=3}
	%o output = matmul %p, %v4
}
# expect:
# graph @f {
# 	input %q: f32[2,4,3,8]
# 	input %k: f32[2,2,3,8]
# 	input %v: f32[2,2,3,8]
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %k, %v
# }
