# One stretch more than a split lists.
# run: --passes=replicate --dp=2
# error: node 'f' (reshape): cannot split the batch over replicas
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	props static canon loss
	%y = mul %x, %w
	%e = expand %y {shape=[1048577,4,3]}
	%f = reshape %e {shape=[4194308,3]}
	%loss: f32[] output = reduce_mean %f {axes=[0,1], keepdims=0}
	loss %loss
}
