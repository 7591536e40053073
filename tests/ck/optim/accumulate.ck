# Accumulation stands behind its gradient, in the backward phase.
# run: --passes=optim --grad-accum 4
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	param %b: f32[4]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %w: f32[4,4]
# 	param %b: f32[4]
# 	state %grad.b: f32[4] param %b state grad
# 	state %grad.w: f32[4,4] param %w state grad
# 	state %adamw.m.b: f32[4] param %b state m
# 	state %adamw.v.b: f32[4] param %b state v
# 	state %adamw.m.w: f32[4,4] param %w state m
# 	state %adamw.v.w: f32[4,4] param %w state v
# 	%y: f32[2,4] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
# 	%db: f32[4] = reduce_sum %dy {axes=[0], keepdims=0} @backward
# 	%grad.b.next: f32[4] param %b = accumulate %grad.b, %db @backward
# 	%dw: f32[4,4] = matmul %x, %dy {ta=1} @backward
# 	%grad.w.next: f32[4,4] param %w = accumulate %grad.w, %dw @backward
# 	%grad_norm: f32[] = grad_norm %grad.b.next, %grad.w.next @update
# 	%b.next: f32[4], %adamw.m.b.next: f32[4], %adamw.v.b.next: f32[4] = adamw %b, %grad.b.next, %adamw.m.b, %adamw.v.b, %grad_norm @update
# 	%w.next: f32[4,4], %adamw.m.w.next: f32[4,4], %adamw.v.w.next: f32[4,4] = adamw %w, %grad.w.next, %adamw.m.w, %adamw.v.w, %grad_norm @update
# 	loss %loss
# }
