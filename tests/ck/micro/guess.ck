# A mean of rows that an input chooses: nothing shows that they are of one
# micro-batch.
# run: --passes=micro --grad-accum 3
# stderr: note: node 'r' (gather) is taken to keep samples of a micro-batch apart from others: ckc cannot show that it does
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
