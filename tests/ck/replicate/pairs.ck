# Every sample with every other one: replicas cannot partition that.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8]
	%y = mul %x, %w
	%p = matmul %y, %x {tb=1}
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# error: node 'p' (matmul): cannot split the batch over replicas: the op combines samples: operand 0, f32[4,8], has samples along dim 0, operand 1, f32[4,8], has samples along dim 0; expected an op that treats samples independently, or a sum or mean over samples; try: --dp off
