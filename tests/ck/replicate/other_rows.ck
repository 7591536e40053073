# Each sample reads the row of another one.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,5]
	param %w: f32[5]
	const %rows: i64[3,1] = {1, 2, 0}
	%y: f32[3,5] = mul %x, %w
	%next: f32[3,5] = gather_nd %y, %rows
	%p: f32[3,5] = mul %next, %x
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# error: node 'next' (gather_nd): cannot split the batch over replicas: the op combines samples: operand 0, f32[3,5], has samples along dim 0, operand 1, i64[3,1], is the same for all samples;
