# A float32 parameter of which nodes read the 16-bit copy lies in host memory; the update keeps the copy's result.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state
# run: --dtype=bf16 --resident-copies=on --passes=precision,autodiff,optim,fuse,offload --offload state
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state --host-memory 196800B
# check: param %w: f32[128,128] host
# check: state %copy.w: bf16[128,128] param %w state copy
# check: state %adamw.m.w: f32[128,128] host
# check: %w.fetched: f32[128,128] = fetch %w @update
# check: %w.next: f32[128,128], %adamw.m.w.next: f32[128,128], %adamw.v.w.next: f32[128,128], %copy.w.next: bf16[128,128] = adamw %w.fetched, %d.t6, %adamw.m.w.fetched, %adamw.v.w.fetched, %grad_norm, %copy.w @update
# check: %w.offloaded: f32[128,128] host = offload_into %w, %w.next @update
# check: %adamw.m.w.offloaded: f32[128,128] host = offload_into %adamw.m.w, %adamw.m.w.next @update
graph @f {
	input %x: f32[2,128]
	param %w: f32[128,128]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
