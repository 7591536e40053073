# A refusal names the smallest budget and what is alive at the tightest step.
# run: --passes=layout,plan --memory-budget 1000B
# error: memory budget 1000 B is too small; smallest budget that works: 2112 B
# error: memory use peaks at softmax_grad (softmax_grad)
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,16]
	%a = softmax %x {axis=1}
	%loss output = reduce_sum %a {axes=[0,1], keepdims=0}
	%da: f32[8,16] = fill {shape=[8,16], value=1} @backward
	%dx output = softmax_grad %da, %a {axis=1} @backward
	loss %loss
}
