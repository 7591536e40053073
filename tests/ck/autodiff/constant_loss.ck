# A loss without a trained parameter.
# run: --passes=autodiff
# error: loss 'loss' does not depend on any trained parameter
graph @f {
	input %x: f32[2,4]
	param %w: f32[4] frozen = splat 1
	%y = mul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
