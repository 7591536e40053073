# Fused attention has no gradient for its mask.
# run: --passes=autodiff
# error: gradient of attention is not supported: its mask requires a gradient
graph @f {
	param %q: f32[1,2,3,4]
	param %m: f32[3,3]
	%o, %lse = attention %q, %q, %q, %m
	%loss output = reduce_sum %o {keepdims=0}
	loss %loss
}
