# There is nothing to keep for a backward that there is not.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype f16 --forward-only
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f32[512,64]
	%loss output = reduce_sum %w {axes=[0,1], keepdims=0}
	loss %loss
}
# error: --save-dtype f16 requires a backward pass, found --forward-only
