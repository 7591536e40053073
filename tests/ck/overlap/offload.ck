# States are fetched before the update in front, the first one while gradients are computed; transfers back end behind
# the ones that come next, the last ones with the step.
# run: --passes=optim,fuse,settle,offload,layout,plan,overlap --offload state
# check: = fetch %adamw.m.w2 @update wait %grad_norm
# check: %dw1: f32[128,128] param %w1
# check: = fetch %adamw.v.w2 @update wait %grad_norm
# check: = adamw %w2, %dw2,
# check: = fetch %adamw.m.w1 @update wait %adamw.v.w2.offloaded
# check: = offload_into %adamw.v.w2, %adamw.v.w2.next @update wait %adamw.v.w1.offloaded
# check: = adamw %w1, %dw1,
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
