# Update in backward: behind the last reader of the copy.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,settle,offload --optimizer sgdm --update-in-backward on --offload state
# check: param %w1: f32[128,128] host
# check: param %w2: f32[128,128] host
# check: = matmul %d.y, %copy.w2 {tb=1} @backward
# check: %w2.fetched: f32[128,128] = fetch %w2 @update
# check: %w2.next: f32[128,128], %sgdm.m.w2.next: f32[128,128], %copy.w2.next: bf16[128,128] = sgdm %w2.fetched, %d.
# check: %w2.offloaded: f32[128,128] host = offload_into %w2, %w2.next @update
# check: %w1.fetched: f32[128,128] = fetch %w1 @update
graph @f {
	input %x: f32[2,128]
	param %w1: f32[128,128]
	param %w2: f32[128,128]
	%h = matmul %x, %w1
	%t = tanh %h
	%y = matmul %t, %w2
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
