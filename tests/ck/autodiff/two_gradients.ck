# One adjoint that is the gradient of two parameters is copied.
# run: --passes=autodiff
# check: param %b
# check: param %a
graph @f {
	param %a: f32[2,4]
	param %b: f32[2,4]
	%c = add %a, %b
	%s = sin %c
	%loss output = reduce_sum %s {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	param %a: f32[2,4]
# 	param %b: f32[2,4]
# 	%c: f32[2,4] = add %a, %b
# 	%s: f32[2,4] = sin %c
# 	%loss: f32[] output = reduce_sum %s {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.s: f32[2,4] adjoint %s = expand %d.loss {shape=[2,4]} @backward
# 	%t8: f32[2,4] = cos %c @backward
# 	%d.a: f32[2,4] param %a adjoint %a = mul %d.s, %t8 @backward
# 	%d.b: f32[2,4] param %b adjoint %b = copy %d.a @backward
# 	loss %loss
# }
