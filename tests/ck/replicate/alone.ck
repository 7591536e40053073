# Of a batch of one that has time first, a mean over time looks like one over
# samples, of which something is made.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[1,12,8]
	input %t: f32[1,8]
	param %w: f32[8,8]
	%r: f32[12,8] = reshape %x {shape=[12,8]}
	%h: f32[12,8] = matmul %r, %w
	%s: f32[12,1,8] = reshape %h {shape=[12,1,8]}
	%m: f32[1,8] = reduce_mean %s {axes=[0], keepdims=0}
	%e: f32[1,8] = exp %m
	%p: f32[1,8] = mul %e, %t
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# error: node 'e' (exp): cannot split the batch over replicas: with one sample per batch, a sum over samples cannot be told from a sum within a sample; use batches of two or more; try: --dp off
