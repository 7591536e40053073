# With micro-batches the seed is a fraction.
# run: --passes=autodiff --grad-accum=4
# check: = fill {value=0.25}
graph @f {
	param %x: f32[2,4]
	%loss output = reduce_sum %x {keepdims=0}
	loss %loss
}
