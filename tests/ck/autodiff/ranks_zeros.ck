# Zeros of 16 bits, which are cast, fit a shard as float32's do.
# run: --passes=autodiff
# run: --passes=autodiff,fuse
graph @f {
	props static canon loss
	ranks 2
	param %x: bf16[4,6] placement 0 [8]
	%v: bf16[4,2] placement 0 [8], %i: i64[4,2] split 0 [8] = topk %x {k=2, axis=1}
	%s: bf16[] placement partial = reduce_sum %v {axes=[0,1], keepdims=0}
	%loss: bf16[] output = all_reduce %s
	loss %loss
}
# check: %d.x: bf16[4,6] param %x adjoint %x placement 0 [8] = scatter_elements
