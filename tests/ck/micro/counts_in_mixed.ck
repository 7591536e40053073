# A sum of labels that a gradient passes, within a mean: the mean of
# micro-batches.
# run: --passes=micro --grad-accum 3
# stderr: the loss of a step is the mean over its micro-batches: node 'd' (mul) mixes samples of a batch other than by a sum or mean
graph @f {
	props canon loss
	input %x: f32[4,5]
	input %labels: i64[4]
	param %w: f32[5,4]
	%h = matmul %x, %w
	%ce, _, _ = sce %h, %labels {ignore=1}
	%d = mul %h, %ce
	%loss output = reduce_mean %d {axes=[0,1], keepdims=0}
	loss %loss
}
# check: input %x
