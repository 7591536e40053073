# What depends on parameters alone is the same on all replicas: each adds its
# share, and so it counts once.  A mean is a sum of shares, too.
# run: --passes=replicate,autodiff --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8]
	%y = mul %x, %w
	%m = reduce_mean %y {axes=[0,1], keepdims=0}
	%v = mul %w, %w
	%s = reduce_sum %v {axes=[0], keepdims=0}
	%loss: f32[] output = add %m, %s
	loss %loss
}
# check: %t9: f32[] = share
# check: %m: f32[] = mul %m.part, %t9
# check: %t11: f32[] = mul %s, %t9
# check: %loss.part: f32[] = add %m, %t11
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
