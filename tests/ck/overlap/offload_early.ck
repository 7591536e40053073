# Update in backward: the arena has room for one state beside a gradient; its transfer back ends behind the next
# gradient, and the next state is fetched after that.
# run: --passes=optim,fuse,settle,offload,layout,plan,overlap --optimizer sgdm --update-in-backward on --offload state
# check: = fetch %sgdm.m.w2 @update
# check: = sgdm %w2, %dw2, %sgdm.m.w2.fetched
# check: = offload_into %sgdm.m.w2, %sgdm.m.w2.next @update wait %dw1
# check: %dw1: f32[128,128] param %w1
# check: = fetch %sgdm.m.w1 @update
# check: = sgdm %w1, %dw1
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
