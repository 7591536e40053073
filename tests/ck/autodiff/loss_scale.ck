# Where adjoints pass through f16 the seed is scaled by what the run time says, micro-batches or not.
# run: --passes=autodiff --grad-accum=4
# check: %d.loss: f32[] adjoint %loss = loss_scale {value=0.25} @backward
# check-not: = fill {value=
# check: %d.x: f32[2,4] param %x adjoint %x = cast
graph @f {
	param %x: f32[2,4]
	%h: f16[2,4] = cast %x {to=f16}
	%y: f16[2,4] = mul %h, %h
	%w: f32[2,4] = cast %y {to=f32}
	%loss output = reduce_sum %w {keepdims=0}
	loss %loss
}
