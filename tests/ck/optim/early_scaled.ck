# A step whose gradients overflow must be undone, which an update in the backward pass could not be.
# run: --passes=autodiff,optim --update-in-backward on
# error: --update-in-backward and --dtype f16 cannot be combined: a step whose gradients overflow must not update parameters; use --dtype bf16, or try: --update-in-backward off
graph @f {
	props static canon loss
	param %x: f32[2,4]
	%h: f16[2,4] = cast %x {to=f16}
	%w: f32[2,4] = cast %h {to=f32}
	%loss output = reduce_sum %w {keepdims=0}
	loss %loss
}
