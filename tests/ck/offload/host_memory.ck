# Host memory for one of two states: a state of 64 KiB takes 64 bytes more, for alignment.
# run: --passes=optim,fuse,offload --offload state --host-memory 65600B
# run: --passes=optim,fuse,offload --offload state --host-memory 131199B
# check: state %adamw.m.w: f32[128,128] host
# check: state %adamw.v.w: f32[128,128] param
# check: = adamw %w, %dw, %adamw.m.w.fetched, %adamw.v.w, %grad_norm
# check: %adamw.m.w.offloaded
# check-count: 1 = fetch
# check-count: 1 = offload_into
graph @f {
	props canon loss bwd
	input %x: f32[2,128]
	param %w: f32[128,128]
	param %b: f32[128]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
