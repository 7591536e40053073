# A constant mask that is not causal stays, as booleans and without the
# repeated batch; one that hides nothing goes.
# run: --passes=canon
graph @f {
	input %q: f32[2,2,3,4]
	const %band: f32[2,1,3,3] = {0, -1e9, -1e9, 0, 0, -1e9, -1e9, 0, 0, 0, -1e9, -1e9, 0, 0, -1e9, -1e9, 0, 0}
	const %none: f32[1,1,3,3] = splat 0
	%s = matmul %q, %q {tb=1}
	%t = add %s, %none
	%u = add %t, %band
	%p = softmax %u {axis=3}
	%o output = matmul %p, %q
}
# expect:
# graph @f {
# 	input %q: f32[2,2,3,4]
# 	const %t11: bool[1,1,3,3] = {1, 0, 0, 1, 1, 0, 0, 1, 1}
# 	%o: f32[2,2,3,4] output, %o.lse: f32[2,2,3] = attention %q, %q, %q, %t11
# }
