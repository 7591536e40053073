# Weights by how often the batch has a class: their sum is counted a round
# later than what they are made of.
# run: --passes=micro --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[4,6]
	input %t: f32[4,6]
	param %w: f32[6]
	%z = mul %x, %w
	%n = reduce_sum %t {axes=[0], keepdims=0}
	%r = recip %n
	%v = mul %t, %r
	%q = mul %z, %v
	%a = reduce_sum %q {axes=[0,1], keepdims=0}
	%b = reduce_sum %v {axes=[0,1], keepdims=0}
	%loss output = div %a, %b
	loss %loss
}
# expect:
# graph @f {
# 	adds
# 	input %x: f32[4,6]
# 	input %t: f32[4,6]
# 	param %w: f32[6]
# 	state %total: f32[6] state total
# 	state %total.2: f32[] state total
# 	%n.2: f32[6] = reduce_sum %t {axes=[0], keepdims=0} count_pass 1
# 	%total.next: f32[6] = accumulate %total, %n.2 count_pass 1
# 	%r.2.2: f32[6] = recip %total.next count_pass 2
# 	%v.2.2: f32[4,6] = mul %t, %r.2.2 count_pass 2
# 	%b.2.2: f32[] = reduce_sum %v.2.2 {axes=[0,1], keepdims=0} count_pass 2
# 	%total.2.next: f32[] = accumulate %total.2, %b.2.2 count_pass 2
# 	%z: f32[4,6] = mul %x, %w
# 	%r.2: f32[6] = recip %total.next
# 	%v.2: f32[4,6] = mul %t, %r.2
# 	%q.2: f32[4,6] = mul %z, %v.2
# 	%a.2: f32[] = reduce_sum %q.2 {axes=[0,1], keepdims=0}
# 	%loss: f32[] output = div %a.2, %total.2.next
# 	loss %loss
# }
