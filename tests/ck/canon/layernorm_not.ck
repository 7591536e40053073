# A mean over other axes than the variance's is no LayerNorm's.
# run: --passes=canon
# check-not: layernorm
graph @f {
	input %x: f32[3,4,4]
	const %eps: f32[] = {1e-5}
	%m = reduce_mean %x {axes=[1,2], keepdims=1}
	%d = sub %x, %m
	%q = mul %d, %d
	%v = reduce_mean %q {axes=[2], keepdims=1}
	%e = add %v, %eps
	%s = sqrt %e
	%y output = div %d, %s
}
