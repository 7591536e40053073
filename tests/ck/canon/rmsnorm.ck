# RMSNorm by a reciprocal, the weight on the left.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4]
	param %g: f32[4]
	const %one: f32[] = {1}
	const %eps: f32[] = {1e-06}
	const %two: f32[] = {2}
	%sq = pow %x, %two
	%var = reduce_mean %sq {axes=[2]}
	%ve = add %eps, %var
	%sd = sqrt %ve
	%r = div %one, %sd
	%n = mul %x, %r
	%y output = mul %g, %n
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	param %g: f32[4]
# 	%y: f32[2,3,4] output, %y.rstd: f32[2,3] = rmsnorm %x, %g {axis=2, eps=9.9999999747524271e-07}
# }
