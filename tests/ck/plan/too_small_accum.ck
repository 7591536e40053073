# A refusal tells the sums of gradients over micro-batches from the optimizer's state, of which alone sgd has none.
# run: --passes=bind,fold,canon,loss,precision,replicate,shard,autodiff,optim,fuse,layout,plan --grad-accum 4 --optimizer adamw --memory-budget 1000B
# error: 4096 B  parameters and buffers
# error: 4096 B  accumulated gradients
# error: 8192 B  optimizer state
# error: 8192 B less: an optimizer without state; try: --optimizer sgd
graph @f {
	input %x: f32[8,32]
	param %w: f32[32,32]
	%y = matmul %x, %w
	%s = mul %y, %y
	%loss output = reduce_mean %s {axes=[0,1], keepdims=0}
}
