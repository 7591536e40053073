# What 16 bits do not stand for is refused.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype bf16 --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f64[512,64]
	%loss output = reduce_sum %w {axes=[0,1], keepdims=0}
	loss %loss
}
# error: --save-dtype bf16: expected float32 parameters, found 'w' in float64; try: --dtype f32
