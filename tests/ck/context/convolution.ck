# A convolution over time needs neighbours.
# run: --passes=context --cp 2 --cp-dim x=2
# error: operand 0, f32[1,3,8], has positions along dim 2
graph @f {
	input %x: f32[1,3,8]
	param %s: f32[1,3,1]
	param %w: f32[2,3,3]
	%y = mul %x, %s
	%c = conv %y, %w {begin=[1], end=[1]}
	%loss output = reduce_mean %c {axes=[0,1,2], keepdims=0}
	loss %loss
}
