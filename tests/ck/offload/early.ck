# Update in backward: transfers surround the update in its place.
# run: --passes=optim,fuse,settle,offload --optimizer sgdm --update-in-backward on --offload state
graph @f {
	props canon loss bwd
	input %x: f32[2,128]
	param %w1: f32[128,128]
	param %w2: f32[128,128]
	%h = matmul %x, %w1
	%y = matmul %h, %w2
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
	%dh = matmul %dy, %w2 {tb=1} @backward
	%dw2 param %w2 = matmul %h, %dy {ta=1} @backward
	%dw1 param %w1 = matmul %x, %dh {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,128]
# 	param %w1: f32[128,128]
# 	param %w2: f32[128,128]
# 	state %sgdm.m.w2: f32[128,128] host param %w2 state m
# 	state %sgdm.m.w1: f32[128,128] host param %w1 state m
# 	%h: f32[2,128] = matmul %x, %w1
# 	%y: f32[2,128] = matmul %h, %w2
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
# 	%dh: f32[2,128] = matmul %dy, %w2 {tb=1} @backward
# 	%dw2: f32[128,128] param %w2 = matmul %h, %dy {ta=1} @backward
# 	%sgdm.m.w2.fetched: f32[128,128] = fetch %sgdm.m.w2 @update
# 	%w2.next: f32[128,128], %sgdm.m.w2.next: f32[128,128] = sgdm %w2, %dw2, %sgdm.m.w2.fetched @update
# 	%sgdm.m.w2.offloaded: f32[128,128] host = offload_into %sgdm.m.w2, %sgdm.m.w2.next @update
# 	%dw1: f32[128,128] param %w1 = matmul %x, %dh {ta=1} @backward
# 	%sgdm.m.w1.fetched: f32[128,128] = fetch %sgdm.m.w1 @update
# 	%w1.next: f32[128,128], %sgdm.m.w1.next: f32[128,128] = sgdm %w1, %dw1, %sgdm.m.w1.fetched @update
# 	%sgdm.m.w1.offloaded: f32[128,128] host = offload_into %sgdm.m.w1, %sgdm.m.w1.next @update
# 	loss %loss
# }
