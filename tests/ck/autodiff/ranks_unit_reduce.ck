# A shard of one class beside a reduced dim: the gradient's sharded dim is the
# forward value's, though both dims are 1.
# run: --passes=autodiff
# check: %t11: f32[8,1,1] placement 2 [3] = reshape %a
# check: %t15: f32[8,1,1] placement 2 [3] = reshape %d.a
# check: %t22: f32[8,5,1] placement 2 [3] = expand
graph @f {
	ranks 3
	props canon loss
	param %x: f32[8,5,1] placement 2 [3]
	%m: f32[8,1] placement 1 [3] = reduce_mean %x {axes=[1], keepdims=0}
	%a: f32[8,1] placement 1 [3] = reduce_max %x {axes=[1], keepdims=0}
	%y: f32[8,1] placement 1 [3] = mul %m, %a
	%s: f32[] placement partial = reduce_sum %y {axes=[0,1], keepdims=0}
	%loss: f32[] output = all_reduce %s
	loss %loss
}
