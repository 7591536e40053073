# Parts pass one after the other where the arena has no room for two.
# run: --passes=optim,fuse,settle,offload,layout,plan,overlap --optimizer sgdm --offload state
# check: = fetch %sgdm.m.w.from0 @update
# check: = sgdm %w.from0, %dw.from0, %sgdm.m.w.from0.fetched
# check: = offload_into %sgdm.m.w.from0, %t22 @update
# check: = fetch %sgdm.m.w.from4096 @update
# check: = sgdm %w.from4096
# check: = offload_into %sgdm.m.w.from4096
# check: = fetch %sgdm.m.w.from8192 @update
# check: = sgdm %w.from8192
graph @f {
	props canon loss bwd
	input %x: f32[2,12288]
	param %w: f32[12288,4096]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4096] = fill {shape=[2,4096], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
