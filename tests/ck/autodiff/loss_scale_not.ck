# Adjoints that are bf16 or f32 are not scaled; what is f16 here has none.
# run: --passes=autodiff
# check-not: loss_scale
# check: %d.loss: f32[] adjoint %loss = fill {value=1} @backward
# check-not: loss_scale
graph @f {
	input %i: f16[2,4]
	param %x: f32[2,4]
	%h: bf16[2,4] = cast %x {to=bf16}
	%j: bf16[2,4] = cast %i {to=bf16}
	%y: bf16[2,4] = mul %h, %j
	%w: f32[2,4] = cast %y {to=f32}
	%loss output = reduce_sum %w {keepdims=0}
	loss %loss
}
