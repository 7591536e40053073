# SiLU, and cross entropy from log-softmax and negative log likelihood.
# run: --passes=canon
graph @f {
	input %x: f32[6,4]
	input %l: i64[6]
	%s = sigmoid %x
	%a = mul %s, %x
	%p = softmax %a {axis=1}
	%lp = log %p
	%y output = nll %lp, %l {ignore=-100}
}
# expect:
# graph @f {
# 	input %x: f32[6,4]
# 	input %l: i64[6]
# 	%a: f32[6,4] = silu %x
# 	%y: f32[] output, %y.lse: f32[6], %y.denom: f32[] = sce %a, %l {ignore=-100}
# }
