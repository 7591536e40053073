# A mean over samples is the mean over micro-batches as it stands.
# run: --passes=micro --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[2,6]
	input %labels: i64[2]
	param %w: f32[6,5]
	%z = matmul %x, %w
	%ce, _, _ = sce %z, %labels
	%m = reduce_mean %z {axes=[0,1], keepdims=0}
	%s = reduce_sum %w {axes=[0,1], keepdims=0}
	%t = add %ce, %s
	%loss output = sub %t, %m
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,6]
# 	input %labels: i64[2]
# 	param %w: f32[6,5]
# 	%z: f32[2,5] = matmul %x, %w
# 	%ce: f32[] = sce %z, %labels
# 	%m: f32[] = reduce_mean %z {axes=[0,1], keepdims=0}
# 	%s: f32[] = reduce_sum %w {axes=[0,1], keepdims=0}
# 	%t: f32[] = add %ce, %s
# 	%loss: f32[] output = sub %t, %m
# 	loss %loss
# }
