# Of two terms one mixes samples: it is the mean of micro-batches.
# run: --passes=micro --grad-accum 2
# stderr: a term of the loss of a step is the mean over its micro-batches: node 'e' (exp) mixes samples of a batch other than by a sum or mean
graph @f {
	props canon loss
	input %x: f32[4,6]
	input %labels: i64[4]
	param %w: f32[6,5]
	%z = matmul %x, %w
	%ce, _, _ = sce %z, %labels {ignore=-100}
	%m = reduce_mean %z {axes=[0], keepdims=0}
	%e = exp %m
	%s = reduce_sum %e {axes=[0], keepdims=0}
	%loss output = add %ce, %s
	loss %loss
}
# expect:
# graph @f {
# 	adds
# 	input %x: f32[4,6]
# 	input %labels: i64[4]
# 	param %w: f32[6,5]
# 	const %t10: i64[] = {-100}
# 	state %total: f32[] state total
# 	%t11.2: bool[4] = eq %labels, %t10 count_pass 1
# 	%t12.2: bool[4] = not %t11.2 count_pass 1
# 	%t13.2: f32[4] = cast %t12.2 {to=f32} count_pass 1
# 	%t14.2: f32[] = reduce_sum %t13.2 {keepdims=0} count_pass 1
# 	%total.next: f32[] = accumulate %total, %t14.2 count_pass 1
# 	%z: f32[4,5] = matmul %x, %w
# 	%m: f32[5] = reduce_mean %z {axes=[0], keepdims=0}
# 	%e: f32[5] = exp %m
# 	%s: f32[] = reduce_sum %e {axes=[0], keepdims=0}
# 	%ce.part: f32[] = sce %z, %labels {reduction=2, ignore=-100}
# 	%ce.2: f32[] = div %ce.part, %total.next
# 	%t26: f32[] = share {micro=1}
# 	%t28: f32[] = mul %s, %t26
# 	%loss: f32[] output = add %ce.2, %t28
# 	loss %loss
# }
