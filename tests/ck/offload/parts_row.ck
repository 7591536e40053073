# One row more is a part of its own.
# run: --passes=optim,fuse,offload --offload state --optimizer sgdm
# check: %w.from0: f32[4096,4096] = slice %w {start=[0,0]
# check: %w.from4096: f32[1,4096] = slice %w {start=[4096,0]
# check-count: 2 = fetch
# check-count: 2 = offload_into
# check-count: 2 = sgdm
graph @f {
	props canon loss bwd
	input %x: f32[2,4097]
	param %w: f32[4097,4096]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4096] = fill {shape=[2,4096], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
