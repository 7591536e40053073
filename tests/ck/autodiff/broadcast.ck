# What was broadcast is summed over the broadcast axes, the smaller operand of
# a difference is negated after the sum.
# run: --passes=autodiff
graph @f {
	param %a: f32[2,1,3]
	param %b: f32[4,1]
	%d = sub %a, %b
	%e = exp %d
	%loss output = reduce_sum %e {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	param %a: f32[2,1,3]
# 	param %b: f32[4,1]
# 	%d: f32[2,4,3] = sub %a, %b
# 	%e: f32[2,4,3] = exp %d
# 	%loss: f32[] output = reduce_sum %e {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.e: f32[2,4,3] adjoint %e = expand %d.loss {shape=[2,4,3]} @backward
# 	%d.d: f32[2,4,3] adjoint %d = mul %d.e, %e @backward
# 	%t9: f32[2,3] = reduce_sum %d.d {axes=[1], keepdims=0} @backward
# 	%d.a: f32[2,1,3] param %a adjoint %a = reshape %t9 {shape=[2,1,3]} @backward
# 	%t11: f32[4] = reduce_sum %d.d {axes=[0,2], keepdims=0} @backward
# 	%t12: f32[4,1] = reshape %t11 {shape=[4,1]} @backward
# 	%d.b: f32[4,1] param %b adjoint %b = neg %t12 @backward
# 	loss %loss
# }
