# The root of a mean: parameters decide the sum, which a round counts by a
# forward pass of its own.
# run: --passes=micro --grad-accum 2
# stderr: the loss is a formula of sums that depend on parameters
graph @f {
	props canon loss
	input %x: f32[4,6]
	param %w: f32[6]
	%z = mul %x, %w
	%q = mul %z, %z
	%m = reduce_mean %q {axes=[0,1], keepdims=0}
	%loss output = sqrt %m
	loss %loss
}
# expect:
# graph @f {
# 	adds
# 	input %x: f32[4,6]
# 	param %w: f32[6]
# 	state %total: f32[] state total
# 	%z.2: f32[4,6] = mul %x, %w count_pass 1
# 	%q.2: f32[4,6] = mul %z.2, %z.2 count_pass 1
# 	%m.part.2: f32[] = reduce_mean %q.2 {axes=[0,1], keepdims=0} count_pass 1
# 	%t8.2: f32[] = share {micro=1} count_pass 1
# 	%m.2.2: f32[] = mul %m.part.2, %t8.2 count_pass 1
# 	%total.next: f32[] = accumulate %total, %m.2.2 count_pass 1
# 	%z: f32[4,6] = mul %x, %w
# 	%q: f32[4,6] = mul %z, %z
# 	%m.part: f32[] = reduce_mean %q {axes=[0,1], keepdims=0}
# 	%t8: f32[] = share {micro=1}
# 	%m.2: f32[] = mul %m.part, %t8
# 	%t17: f32[] = batch_total %m.2, %total.next
# 	%t18: f32[] = sqrt %t17
# 	%loss: f32[] output = mul %t18, %t8
# 	loss %loss
# }
