# A mean that is scaled by what may be the size of a micro-batch.
# run: --passes=micro --grad-accum 3
# stderr: note: node 'loss' (mul): a mean over samples is scaled by 4, which is treated as a constant; if it is the batch size, use a sum without the factor
graph @f {
	props canon loss
	input %x: f32[4,5]
	param %w: f32[5,5]
	const %four: f32[] = {4}
	%h = matmul %x, %w
	%m = reduce_mean %h {axes=[0,1], keepdims=0}
	%loss output = mul %m, %four
	loss %loss
}
# check: input %x
