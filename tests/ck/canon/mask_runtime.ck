# A padding mask from an input together with a causal constant: the constant
# becomes a flag, the repeated mask of the batch a boolean operand.
# run: --passes=canon
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,4,3,8]
	input %v: f32[2,4,3,8]
	input %pad: bool[2,3]
	const %tri: bool[1,1,3,3] = {1, 0, 0, 1, 1, 0, 1, 1, 1}
	const %zero: f32[] = {0}
	const %inf: f32[] = {-inf}
	%p4 = reshape %pad {shape=[2,1,1,3]}
	%pe = expand %p4 {shape=[2,1,3,3]}
	%both = and %tri, %pe
	%m = where %both, %zero, %inf
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%u = add %s, %m
	%p = softmax %u {axis=3}
	%o output = matmul %p, %v
}
# expect:
# graph @f {
# 	input %q: f32[2,4,3,8]
# 	input %k: f32[2,4,3,8]
# 	input %v: f32[2,4,3,8]
# 	input %pad: bool[2,3]
# 	%p4: bool[2,1,1,3] = reshape %pad {shape=[2,1,1,3]}
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %k, %v, %p4 {causal=1}
# }
