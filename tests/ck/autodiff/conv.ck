# A convolution differentiates into the other two products of its form; the
# transposed one too.
# run: --passes=autodiff
graph @f {
	props bound static canon loss
	input %x: f32[2,2,6,5]
	param %w: f32[4,2,3,3]
	param %b: f32[4]
	param %t: f32[4,3,2,2]
	%c: f32[2,4,3,2] = conv %x, %w, %b {stride=[2,2], dilation=[1,1], begin=[1,0], end=[0,0]}
	%y: f32[2,3,6,4] = conv_dx %c, %t {stride=[2,2], dilation=[1,1], begin=[0,0], end=[0,0], out=[6,4], extra=[0,0]}
	%loss: f32[] = reduce_sum %y {axes=[0,1,2,3], keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,2,6,5]
# 	param %w: f32[4,2,3,3]
# 	param %b: f32[4]
# 	param %t: f32[4,3,2,2]
# 	%c: f32[2,4,3,2] = conv %x, %w, %b {stride=[2,2], dilation=[1,1], begin=[1,0], end=[0,0]}
# 	%y: f32[2,3,6,4] = conv_dx %c, %t {stride=[2,2], dilation=[1,1], begin=[0,0], end=[0,0], out=[6,4], extra=[0,0]}
# 	%loss: f32[] = reduce_sum %y {axes=[0,1,2,3], keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.y: f32[2,3,6,4] adjoint %y = expand %d.loss {shape=[2,3,6,4]} @backward
# 	%d.t: f32[4,3,2,2] param %t adjoint %t = conv_dw %d.y, %c {stride=[2,2], dilation=[1,1], begin=[0,0], end=[0,0], kernel=[2,2]} @backward
# 	%d.c: f32[2,4,3,2] adjoint %c = conv %d.y, %t {stride=[2,2], dilation=[1,1], begin=[0,0], end=[0,0]} @backward
# 	%d.b: f32[4] param %b adjoint %b = reduce_sum %d.c {axes=[0,2,3], keepdims=0} @backward
# 	%d.w: f32[4,2,3,3] param %w adjoint %w = conv_dw %x, %d.c {stride=[2,2], dilation=[1,1], begin=[1,0], end=[0,0], kernel=[3,3]} @backward
# 	loss %loss
# }
