# Adam is AdamW with the decay in the gradient; its states have names of their own.
# run: --passes=optim --optimizer adam --no-decay w
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
# check: state %adam.m.w: f32[4,4] param %w state m
# check: state %adam.v.w: f32[4,4] param %w state v
# check: %w.next: f32[4,4], %adam.m.w.next: f32[4,4], %adam.v.w.next: f32[4,4] = adamw %w, %dw, %adam.m.w, %adam.v.w, %grad_norm {decay=0, coupled=1} @update
