# Parts of a parameter of more than 64 MiB with parts of its copy and of its 16-bit gradient.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state --optimizer sgdm
# check: param %w: f32[4096,6001] host
# check: %w.from0: f32[2795,6001] host = slice %w {start=[0,0], step=[1,1]} @update
# check: %copy.w.from0: bf16[2795,6001] = slice %copy.w {start=[0,0], step=[1,1]} @update
# check: %copy.w.from2795: bf16[1301,6001] = slice %copy.w {start=[2795,0], step=[1,1]} @update
# check: %w.from0.fetched: f32[2795,6001] = fetch %w.from0 @update
# check: = sgdm %w.from0.fetched, %
# check: = offload_into %w.from0, %
# check-count: 4 = fetch
# check-count: 2 = sgdm
graph @f {
	input %x: f32[2,4096]
	param %w: f32[4096,6001]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
