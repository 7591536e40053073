# The average of a parameter in float32, whatever the states are in, made of what the update has
# made.
# run: --passes=optim --ema --optimizer lion --state-dtype bf16
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	param %b: f32[4] frozen
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %w: f32[4,4]
# 	param %b: f32[4] frozen
# 	state %lion.m.w: bf16[4,4] param %w state m
# 	state %lion.ema.w: f32[4,4] param %w state ema
# 	%y: f32[2,4] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
# 	%dw: f32[4,4] param %w = matmul %x, %dy {ta=1} @backward
# 	%grad_norm: f32[] = grad_norm %dw @update
# 	%w.next: f32[4,4], %lion.m.w.next: bf16[4,4] = lion %w, %dw, %lion.m.w, %grad_norm @update
# 	%lion.ema.w.next: f32[4,4] = ema %lion.ema.w, %w.next @update
# 	loss %loss
# }
