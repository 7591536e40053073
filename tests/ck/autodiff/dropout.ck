# Dropout keeps nothing: the gradient draws the mask again from its stream.
# run: --passes=autodiff
# check: = dropout %d.y {ratio=0.1, stream=2, bwd=1} @backward
graph @f {
	param %x: f32[2,4]
	%y = dropout %x {ratio=0.1, stream=2}
	%s = sin %y
	%loss output = reduce_sum %s {keepdims=0}
	loss %loss
}
