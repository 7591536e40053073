# Both states of a parameter are in host memory between updates; those of a small one stay in device memory.
# run: --passes=optim,fuse,offload --offload state
# run: --passes=optim,fuse,offload,offload --offload state
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
# expect:
# graph @f {
# 	input %x: f32[2,128]
# 	param %w: f32[128,128]
# 	param %b: f32[128]
# 	state %adamw.m.b: f32[128] param %b state m
# 	state %adamw.v.b: f32[128] param %b state v
# 	state %adamw.m.w: f32[128,128] host param %w state m
# 	state %adamw.v.w: f32[128,128] host param %w state v
# 	%y: f32[2,128] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
# 	%db: f32[128] param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
# 	%dw: f32[128,128] param %w = matmul %x, %dy {ta=1} @backward
# 	%grad_norm: f32[] = grad_norm %db, %dw @update
# 	%b.next: f32[128], %adamw.m.b.next: f32[128], %adamw.v.b.next: f32[128] = adamw %b, %db, %adamw.m.b, %adamw.v.b, %grad_norm @update
# 	%adamw.m.w.fetched: f32[128,128] = fetch %adamw.m.w @update
# 	%adamw.v.w.fetched: f32[128,128] = fetch %adamw.v.w @update
# 	%w.next: f32[128,128], %adamw.m.w.next: f32[128,128], %adamw.v.w.next: f32[128,128] = adamw %w, %dw, %adamw.m.w.fetched, %adamw.v.w.fetched, %grad_norm @update
# 	%adamw.m.w.offloaded: f32[128,128] host = offload_into %adamw.m.w, %adamw.m.w.next @update
# 	%adamw.v.w.offloaded: f32[128,128] host = offload_into %adamw.v.w, %adamw.v.w.next @update
# 	loss %loss
# }
