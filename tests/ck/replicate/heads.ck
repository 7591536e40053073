# Samples and heads in one dim: a constant that each sample has for its heads is
# the same on all replicas.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,2,4]
	param %w: f32[4]
	const %slope: f32[6,1] = {1, -2, 1, -2, 1, -2}
	%r: f32[6,4] = reshape %x {shape=[6,4]}
	%y: f32[6,4] = mul %r, %slope
	%p: f32[6,4] = mul %y, %w
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
