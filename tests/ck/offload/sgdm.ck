# One state of a parameter.
# run: --passes=optim,fuse,offload --offload state --optimizer sgdm
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
# 	state %sgdm.m.b: f32[128] param %b state m
# 	state %sgdm.m.w: f32[128,128] host param %w state m
# 	%y: f32[2,128] = matmul %x, %w, %b
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
# 	%db: f32[128] param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
# 	%dw: f32[128,128] param %w = matmul %x, %dy {ta=1} @backward
# 	%grad_norm: f32[] = grad_norm %db, %dw @update
# 	%b.next: f32[128], %sgdm.m.b.next: f32[128] = sgdm %b, %db, %sgdm.m.b, %grad_norm @update
# 	%sgdm.m.w.fetched: f32[128,128] = fetch %sgdm.m.w @update
# 	%w.next: f32[128,128], %sgdm.m.w.next: f32[128,128] = sgdm %w, %dw, %sgdm.m.w.fetched, %grad_norm @update
# 	%sgdm.m.w.offloaded: f32[128,128] host = offload_into %sgdm.m.w, %sgdm.m.w.next @update
# 	loss %loss
# }
