# A wish that meets nothing is a mistake.
# run: --passes=layout,plan --keep h.*
# error: --keep 'h.*' matches no value that the forward pass stores
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,16]
	%loss output = reduce_sum %x {axes=[0,1], keepdims=0}
	loss %loss
}
