# Every sample with every other one: not what replicas could share out.
# run: --passes=deal --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8]
	%y = mul %x, %w
	%p = matmul %y, %x {tb=1}
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# error: node 'p' (matmul): cannot deal its samples to replicas: operand 1 does not go with the cut of operand 0
