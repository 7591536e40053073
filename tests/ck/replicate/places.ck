# A constant that differs between the samples of a batch is no replica's own.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,2,4]
	param %w: f32[4]
	const %slope: f32[6,1] = {1, -2, 1, -2, 1, -3}
	%r: f32[6,4] = reshape %x {shape=[6,4]}
	%y: f32[6,4] = mul %r, %slope
	%p: f32[6,4] = mul %y, %w
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# error: node 'y' (mul): cannot split the batch over replicas: the op combines samples: operand 0, f32[6,4], has samples along dim 0, operand 1, f32[6,1], is the same for all samples;
