# What a recurrence begins with is the same for every sample: so are its products
# with weights.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	param %u: f32[8,8]
	const %h0: f32[4,8] = splat 0
	%a: f32[4,8] = matmul %x, %w
	%b: f32[4,8] = matmul %h0, %u
	%s: f32[4,8] = add %a, %b
	%y: f32[4,8] = tanh %s
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
