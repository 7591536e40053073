# A sum divided by the number of samples less one: all micro-batches count it.
# run: --passes=bind,fold,canon,loss,micro,replicate --grad-accum 2
# expect:
# graph @f {
# 	adds
# 	input %x: f32[4,6]
# 	param %w: f32[6]
# 	const %t13: f32[] = {-1}
# 	const %t12.2: f32[] = {4}
# 	state %total: f32[] state total
# 	%t15.2: f32[] = share {micro=1} count_pass 1
# 	%t16.2: f32[] = mul %t13, %t15.2 count_pass 1
# 	%t14.2.2: f32[] = add %t12.2, %t16.2 count_pass 1
# 	%total.next: f32[] = accumulate %total, %t14.2.2 count_pass 1
# 	%z: f32[4,6] = mul %x, %w
# 	%s: f32[] = reduce_sum %z {axes=[0,1], keepdims=0}
# 	%loss: f32[] output = div %s, %total.next
# 	loss %loss
# }
graph @f {
	input %x: f32[4,6]
	param %w: f32[6]
	const %first: i64[] = {0}
	const %one: f32[] = {1}
	%z = mul %x, %w
	%s = reduce_sum %z {axes=[0,1], keepdims=0}
	%e = shape %x
	%i = gather %e, %first
	%n = cast %i {to=f32}
	%o = sub %n, %one
	%loss: f32[] output = div %s, %o
	loss %loss
}
