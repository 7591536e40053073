# A mean of rows that an input chooses: nothing shows that they are of one
# micro-batch.
# run: --passes=micro --grad-accum 3
# stderr: note: node 'r' (gather) is assumed not to mix samples of different micro-batches; ckc cannot prove it
graph @f {
	props canon loss
	input %x: f32[4,5]
	input %p: i64[4]
	param %w: f32[5,5]
	%h = matmul %x, %w
	%r = gather %h, %p
	%loss output = reduce_mean %r {axes=[0,1], keepdims=0}
	loss %loss
}
# check: input %x
