# An input of another number of rows cannot be split as the first one is.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,8]
	input %t: f32[3]
	param %w: f32[8]
	%y = mul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# error: cannot split the batch over replicas: input 't': expected 4 samples along the first dim, as in 'x', found 3; try: --dp off
