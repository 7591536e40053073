# A mean over samples times what the file says is their number: each replica
# has its part of both, and adds both up.
# run: --passes=bind,fold,canon,loss,replicate --dp 2
# expect:
# graph @f {
# 	replicas 2
# 	input %x: f32[8,3] batch 0
# 	param %w: f32[3] = {1, 1, 1}
# 	const %t10: f32[] = {8}
# 	%y: f32[8,3] = mul %x, %w
# 	%m.part: f32[] = reduce_mean %y {axes=[0,1], keepdims=0}
# 	%t13: f32[] = share
# 	%m: f32[] = mul %m.part, %t13
# 	%t15: f32[] = all_reduce %m {side=1, group=1}
# 	%t16: f32[] = all_reduce %t10 {side=1, group=1}
# 	%loss.part: f32[] = mul %t15, %t16
# 	%t17: f32[] = mul %loss.part, %t13
# 	%loss: f32[] output = all_reduce %t17 {group=1}
# 	loss %loss
# }
graph @f {
	input %x: f32[8,3]
	param %w: f32[3] = splat 1
	const %first: i64[] = {0}
	%y = mul %x, %w
	%m = reduce_mean %y {axes=[0,1], keepdims=0}
	%e = shape %x
	%i = gather %e, %first
	%n = cast %i {to=f32}
	%loss: f32[] output = mul %m, %n
	loss %loss
}
