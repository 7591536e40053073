# Scaled product, causal mask as floats, softmax, product: one op, no mask.
# run: --passes=canon
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,4,3,8]
	input %v: f32[2,4,3,8]
	const %c: f32[] = {0.125}
	const %m: f32[1,1,3,3] = {0, -3.4e38, -3.4e38, 0, 0, -3.4e38, 0, 0, 0}
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%t = mul %s, %c
	%u = add %t, %m
	%p = softmax %u {axis=3}
	%o output = matmul %p, %v
}
# expect:
# graph @f {
# 	input %q: f32[2,4,3,8]
# 	input %k: f32[2,4,3,8]
# 	input %v: f32[2,4,3,8]
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %k, %v {scale=0.125, causal=1}
# }
