# The scale's root on both operands, k transposed through a 3-D view, the mask
# repeated over the batch, NaN rows set to zero.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4,8]
	input %y: f32[2,3,4,8]
	input %v: f32[2,4,3,8]
	const %c: f32[] = {0.5}
	const %z: f32[] = {0}
	const %m: f32[2,1,3,3] = {0, -inf, -inf, 0, 0, -inf, 0, 0, 0, 0, -inf, -inf, 0, 0, -inf, 0, 0, 0}
	%q = transpose %x {perm=[0,2,1,3]}
	%k = transpose %y {perm=[0,2,1,3]}
	%k3 = reshape %k {shape=[8,3,8]}
	%kt = transpose %k3 {perm=[0,2,1]}
	%k4 = reshape %kt {shape=[2,4,8,3]}
	%qs = mul %q, %c
	%ks = mul %k4, %c
	%s = matmul %qs, %ks
	%u = add %s, %m
	%p = softmax %u {axis=3}
	%n = isnan %p
	%w = where %n, %z, %p
	%o output = matmul %w, %v
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4,8]
# 	input %y: f32[2,3,4,8]
# 	input %v: f32[2,4,3,8]
# 	%q: f32[2,4,3,8] = transpose %x {perm=[0,2,1,3]}
# 	%k: f32[2,4,3,8] = transpose %y {perm=[0,2,1,3]}
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %k, %v {scale=0.25, causal=1}
# }
