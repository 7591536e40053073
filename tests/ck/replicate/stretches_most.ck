# Samples in 2^20 stretches, as many as a split lists.
# run: --passes=replicate --dp=2
# check: %f: f32[4194304,3] = reshape %e
# check: %loss: f32[] output = all_reduce
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	props static canon loss
	%y = mul %x, %w
	%e = expand %y {shape=[1048576,4,3]}
	%f = reshape %e {shape=[4194304,3]}
	%loss: f32[] output = reduce_mean %f {axes=[0,1], keepdims=0}
	loss %loss
}
