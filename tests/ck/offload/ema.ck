# A moving average reads the whole new parameter, which then passes whole; the average itself stays in device memory.
# run: --passes=optim,fuse,offload --offload state --ema
# check: state %adamw.ema.w: f32[4096,6001] param
# check-not: slice
# check: = adamw %w, %dw, %adamw.m.w.fetched, %adamw.v.w.fetched, %grad_norm
# check: = ema %adamw.ema.w, %w.next
# check-count: 2 = fetch
graph @f {
	props canon loss bwd
	input %x: f32[2,4096]
	param %w: f32[4096,6001]
	param %b: f32[6001]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,6001] = fill {shape=[2,6001], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
