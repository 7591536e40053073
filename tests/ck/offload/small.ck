# States of less than 64 KiB stay in device memory.
# run: --passes=optim,fuse,offload --offload state
# check: = adamw %w, %dw, %adamw.m.w, %adamw.v.w, %grad_norm
# check-count: 0 host
# check-count: 0 fetch
graph @f {
	props canon loss bwd
	input %x: f32[2,128]
	param %w: f32[128,127]
	param %b: f32[127]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,127] = fill {shape=[2,127], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
