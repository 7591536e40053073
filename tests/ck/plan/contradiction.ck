# A value cannot be kept and recomputed.
# run: --passes=layout,plan --keep a --recompute-values a*
# error: value 'a' cannot be both kept and recomputed
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,16]
	%a = softmax %x {axis=1}
	%loss output = reduce_sum %a {axes=[0,1], keepdims=0}
	%da: f32[8,16] = fill {shape=[8,16], value=1} @backward
	%dx output = softmax_grad %da, %a {axis=1} @backward
	loss %loss
}
