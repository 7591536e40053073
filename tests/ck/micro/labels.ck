# What a mean over labels is divided by is counted in a round; a penalty has
# its share in each micro-batch.
# run: --passes=micro --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[2,6]
	input %labels: i64[2]
	param %w: f32[6,5]
	%z = matmul %x, %w
	%ce, _, _ = sce %z, %labels {ignore=-100}
	%s = reduce_sum %w {axes=[0,1], keepdims=0}
	%loss output = add %ce, %s
	loss %loss
}
# expect:
# graph @f {
# 	adds
# 	input %x: f32[2,6]
# 	input %labels: i64[2]
# 	param %w: f32[6,5]
# 	const %t8: i64[] = {-100}
# 	state %total: f32[] state total
# 	%t9.2: bool[2] = eq %labels, %t8 count_pass 1
# 	%t10.2: bool[2] = not %t9.2 count_pass 1
# 	%t11.2: f32[2] = cast %t10.2 {to=f32} count_pass 1
# 	%t12.2: f32[] = reduce_sum %t11.2 {keepdims=0} count_pass 1
# 	%total.next: f32[] = accumulate %total, %t12.2 count_pass 1
# 	%z: f32[2,5] = matmul %x, %w
# 	%s: f32[] = reduce_sum %w {axes=[0,1], keepdims=0}
# 	%ce.part: f32[] = sce %z, %labels {reduction=2, ignore=-100}
# 	%ce.2: f32[] = div %ce.part, %total.next
# 	%t23: f32[] = share {micro=1}
# 	%t17: f32[] = mul %s, %t23
# 	%loss: f32[] output = add %ce.2, %t17
# 	loss %loss
# }
