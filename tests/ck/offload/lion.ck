# One state of a parameter; gradients are accumulated in device memory.
# run: --passes=optim,fuse,offload --offload state --optimizer lion --grad-accum 2
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
# 	state %grad.b: f32[128] param %b state grad
# 	state %grad.w: f32[128,128] param %w state grad
# 	state %lion.m.b: f32[128] param %b state m
# 	state %lion.m.w: f32[128,128] host param %w state m
# 	%y: f32[2,128] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
# 	%db: f32[128] = reduce_sum %dy {axes=[0], keepdims=0} @backward
# 	%grad.b.next: f32[128] param %b = accumulate %grad.b, %db @backward
# 	%dw: f32[128,128] = matmul %x, %dy {ta=1} @backward
# 	%grad.w.next: f32[128,128] param %w = accumulate %grad.w, %dw @backward
# 	%grad_norm: f32[] = grad_norm %grad.b.next, %grad.w.next @update
# 	%b.next: f32[128], %lion.m.b.next: f32[128] = lion %b, %grad.b.next, %lion.m.b, %grad_norm @update
# 	%lion.m.w.fetched: f32[128,128] = fetch %lion.m.w @update
# 	%w.next: f32[128,128], %lion.m.w.next: f32[128,128] = lion %w, %grad.w.next, %lion.m.w.fetched, %grad_norm @update
# 	%lion.m.w.offloaded: f32[128,128] host = offload_into %lion.m.w, %lion.m.w.next @update
# 	loss %loss
# }
