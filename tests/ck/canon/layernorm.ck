# LayerNorm written out, the difference computed twice.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4]
	param %g: f32[4]
	param %b: f32[4]
	const %two: f32[] = {2}
	const %eps: f32[] = {1e-05}
	%m = reduce_mean %x {axes=[2]}
	%d = sub %x, %m
	%d2 = sub %x, %m
	%sq = pow %d2, %two
	%var = reduce_mean %sq {axes=[2]}
	%ve = add %var, %eps
	%sd = sqrt %ve
	%n = div %d, %sd
	%ng = mul %n, %g
	%y output = add %ng, %b
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	param %g: f32[4]
# 	param %b: f32[4]
# 	%y: f32[2,3,4] output, %y.mean: f32[2,3], %y.rstd: f32[2,3] = layernorm %x, %g, %b {axis=2, eps=9.9999997473787516e-06}
# }
