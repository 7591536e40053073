# A mean over positions is the sum of the parts' means by their share; what has no positions counts
# once, and is added as a share.
# run: --passes=context --cp 3 --cp-dim x=1
graph @f {
	input %x: f32[2,6,4]
	param %w: f32[4,4]
	%r = reshape %x {shape=[12,4]}
	%a = matmul %r, %w
	%b = tanh %a
	%m = reduce_mean %b {axes=[0,1], keepdims=0}
	%p = mul %w, %w
	%s = reduce_sum %p {axes=[0,1], keepdims=0}
	%loss output = add %m, %s
	loss %loss
}
# expect:
# graph @f {
# 	replicas 3 exactly
# 	context 3
# 	input %x: f32[2,6,4]
# 	param %w: f32[4,4]
# 	%t11: f32[2,2,4] = own %x {axis=1, first_axis=1, segment=[6], from=1, group=7}
# 	%t12: f32[4,4] = reshape %t11 {shape=[4,4]}
# 	%a: f32[4,4] = matmul %t12, %w
# 	%b: f32[4,4] = tanh %a
# 	%t15: f32[] = reduce_mean %b {axes=[0,1], keepdims=0}
# 	%t16: f32[] = share
# 	%m: f32[] = mul %t15, %t16
# 	%p: f32[4,4] = mul %w, %w
# 	%s: f32[] = reduce_sum %p {axes=[0,1], keepdims=0}
# 	%t20: f32[] = share
# 	%t21: f32[] = mul %s, %t20
# 	%loss.part: f32[] = add %m, %t21
# 	%loss: f32[] output = all_reduce %loss.part {group=1}
# 	loss %loss
# }
