# Images that are channels of one, each with filters of its own.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[2,3,6]
	param %w: f32[3,4]
	%image: f32[1,6,6] = reshape %x {shape=[1,6,6]}
	%row: f32[2,3,6] = mul %x, %x
	%f: f32[2,3,3] = slice %row {start=[0,0,0], step=[1,1,1]}
	%y: f32[1,2,4] = conv %image, %f {stride=[1], dilation=[1], begin=[0], end=[0], group=2}
	%own: f32[2,4] = reshape %y {shape=[2,4]}
	%z: f32[2,3] = matmul %own, %w {tb=1}
	%loss: f32[] output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# check: conv %image, %f {stride=[1], dilation=[1], begin=[0], end=[0], group=2}
# check-count: 1 all_reduce
