# A mean over another mean, of an input: all micro-batches count the second.
# run: --passes=micro --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[4,6]
	input %s: f32[4,6]
	param %w: f32[6]
	%z = mul %x, %w
	%q = mul %z, %s
	%a = reduce_mean %q {axes=[0,1], keepdims=0}
	%b = reduce_mean %s {axes=[0,1], keepdims=0}
	%loss output = div %a, %b
	loss %loss
}
# expect:
# graph @f {
# 	adds
# 	input %x: f32[4,6]
# 	input %s: f32[4,6]
# 	param %w: f32[6]
# 	state %total: f32[] state total
# 	%t10.2: f32[] = share {micro=1} count_pass 1
# 	%b.part.2: f32[] = reduce_mean %s {axes=[0,1], keepdims=0} count_pass 1
# 	%b.2.2: f32[] = mul %b.part.2, %t10.2 count_pass 1
# 	%total.next: f32[] = accumulate %total, %b.2.2 count_pass 1
# 	%z: f32[4,6] = mul %x, %w
# 	%q: f32[4,6] = mul %z, %s
# 	%a.part: f32[] = reduce_mean %q {axes=[0,1], keepdims=0}
# 	%t10: f32[] = share {micro=1}
# 	%a.2: f32[] = mul %a.part, %t10
# 	%loss: f32[] output = div %a.2, %total.next
# 	loss %loss
# }
