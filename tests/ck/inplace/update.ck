# Optimizer steps write over parameters and state.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	param %w: f32[4,4]
	state %m: f32[4,4] param %w state m
	state %v: f32[4,4] param %w state v
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%s: f32[4,4] = fill {shape=[4,4], value=1} @backward
	%dw param %w = matmul %x, %s {ta=1} @backward
	%w1: f32[4,4], %m1: f32[4,4], %v1: f32[4,4] = adamw %w, %dw, %m, %v @update
	loss %loss
}
# expect:
# graph @f {
# 	props planned
# 	input %x: f32[4,4] bytes 64
# 	param %w: f32[4,4] bytes 64
# 	state %m: f32[4,4] param %w state m bytes 64
# 	state %v: f32[4,4] param %w state v bytes 64
# 	%y: f32[4,4] bytes 64 = matmul %x, %w
# 	%loss: f32[] output bytes 64 = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%s: f32[4,4] bytes 64 = fill {shape=[4,4], value=1} @backward
# 	%dw: f32[4,4] param %w bytes 64 = matmul %x, %s {ta=1} @backward
# 	%w1: f32[4,4] in %w, %m1: f32[4,4] in %m, %v1: f32[4,4] in %v = adamw %w, %dw, %m, %v @update
# 	loss %loss
# }
