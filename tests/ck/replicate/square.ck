# The square of a mean over samples: the mean is added up first, and so are the
# adjoints of what each replica makes of it.
# run: --passes=replicate,autodiff --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8]
	%y = mul %x, %w
	%m = reduce_sum %y {axes=[0,1], keepdims=0}
	%loss: f32[] output = mul %m, %m
	loss %loss
}
# check: = all_reduce %m {side=1, group=1}
# check: %loss: f32[] output = all_reduce
# check: = all_reduce
# check-count: 3 all_reduce
