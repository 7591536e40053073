# A float32 parameter above 64 MiB: parts of as many rows as fit in 64 MiB, cut before the first one is updated.
# run: --passes=optim,fuse,offload --offload state
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
# expect:
# graph @f {
# 	input %x: f32[2,4096]
# 	param %w: f32[4096,6001]
# 	param %b: f32[6001]
# 	state %adamw.m.b: f32[6001] param %b state m
# 	state %adamw.v.b: f32[6001] param %b state v
# 	state %adamw.m.w: f32[4096,6001] host param %w state m
# 	state %adamw.v.w: f32[4096,6001] host param %w state v
# 	%y: f32[2,6001] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,6001] = fill {shape=[2,6001], value=1} @backward
# 	%db: f32[6001] param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
# 	%dw: f32[4096,6001] param %w = matmul %x, %dy {ta=1} @backward
# 	%grad_norm: f32[] = grad_norm %db, %dw @update
# 	%b.next: f32[6001], %adamw.m.b.next: f32[6001], %adamw.v.b.next: f32[6001] = adamw %b, %db, %adamw.m.b, %adamw.v.b, %grad_norm @update
# 	%w.from0: f32[2795,6001] = slice %w {start=[0,0], step=[1,1]} @update
# 	%dw.from0: f32[2795,6001] = slice %dw {start=[0,0], step=[1,1]} @update
# 	%adamw.m.w.from0: f32[2795,6001] host = slice %adamw.m.w {start=[0,0], step=[1,1]} @update
# 	%adamw.v.w.from0: f32[2795,6001] host = slice %adamw.v.w {start=[0,0], step=[1,1]} @update
# 	%w.from2795: f32[1301,6001] = slice %w {start=[2795,0], step=[1,1]} @update
# 	%dw.from2795: f32[1301,6001] = slice %dw {start=[2795,0], step=[1,1]} @update
# 	%adamw.m.w.from2795: f32[1301,6001] host = slice %adamw.m.w {start=[2795,0], step=[1,1]} @update
# 	%adamw.v.w.from2795: f32[1301,6001] host = slice %adamw.v.w {start=[2795,0], step=[1,1]} @update
# 	%adamw.m.w.from0.fetched: f32[2795,6001] = fetch %adamw.m.w.from0 @update
# 	%adamw.v.w.from0.fetched: f32[2795,6001] = fetch %adamw.v.w.from0 @update
# 	%t30: f32[2795,6001], %t31: f32[2795,6001], %t32: f32[2795,6001] = adamw %w.from0, %dw.from0, %adamw.m.w.from0.fetched, %adamw.v.w.from0.fetched, %grad_norm @update
# 	%adamw.m.w.from0.offloaded: f32[2795,6001] host = offload_into %adamw.m.w.from0, %t31 @update
# 	%adamw.v.w.from0.offloaded: f32[2795,6001] host = offload_into %adamw.v.w.from0, %t32 @update
# 	%adamw.m.w.from2795.fetched: f32[1301,6001] = fetch %adamw.m.w.from2795 @update
# 	%adamw.v.w.from2795.fetched: f32[1301,6001] = fetch %adamw.v.w.from2795 @update
# 	%t38: f32[1301,6001], %t39: f32[1301,6001], %t40: f32[1301,6001] = adamw %w.from2795, %dw.from2795, %adamw.m.w.from2795.fetched, %adamw.v.w.from2795.fetched, %grad_norm @update
# 	%adamw.m.w.from2795.offloaded: f32[1301,6001] host = offload_into %adamw.m.w.from2795, %t39 @update
# 	%adamw.v.w.from2795.offloaded: f32[1301,6001] host = offload_into %adamw.v.w.from2795, %t40 @update
# 	loss %loss
# }
