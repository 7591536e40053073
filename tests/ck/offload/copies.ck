# An update that writes the 16-bit copy of its parameter keeps that result.
# run: --dtype=bf16 --resident-copies=on --passes=precision,autodiff,optim,fuse,offload --offload state
# check: state %copy.w: bf16[128,128] param %w state copy
# check: state %adamw.m.w: f32[128,128] host
# check: %copy.w.next: bf16[128,128] = adamw %w, %d.t6, %adamw.m.w.fetched, %adamw.v.w.fetched, %grad_norm, %copy.w @update
# check: %adamw.m.w.offloaded: f32[128,128] host = offload_into %adamw.m.w, %adamw.m.w.next @update
graph @f {
	input %x: f32[2,128]
	param %w: f32[128,128]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
