# All pairs of samples: the graph stays as it is, and that is said.
# run: --passes=micro --grad-accum 2
# stderr: note: the loss of a step is the mean over its micro-batches: node 'p' (matmul) mixes samples of a batch
graph @f {
	props canon loss
	input %x: f32[4,6]
	param %w: f32[6,5]
	%z = matmul %x, %w
	%p = matmul %z, %z {tb=1}
	%loss output = reduce_mean %p {axes=[0,1], keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[4,6]
# 	param %w: f32[6,5]
# 	%z: f32[4,5] = matmul %x, %w
# 	%p: f32[4,4] = matmul %z, %z {tb=1}
# 	%loss: f32[] output = reduce_mean %p {axes=[0,1], keepdims=0}
# 	loss %loss
# }
