# One row cannot be cut.
# run: --passes=optim,fuse,offload --offload state --optimizer sgdm
# check-not: slice
# check: %sgdm.m.w.fetched: f32[1,17000000] = fetch %sgdm.m.w
graph @f {
	props canon loss bwd
	input %x: f32[2,1]
	param %w: f32[1,17000000]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,17000000] = fill {shape=[2,17000000], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
