# A row of more than 64 MiB is a part.
# run: --passes=optim,fuse,offload --offload state --optimizer sgdm
# check: %w.from0: f32[1,17000000] = slice
# check: %w.from1: f32[1,17000000] = slice
# check-count: 2 = fetch
graph @f {
	props canon loss bwd
	input %x: f32[2,2]
	param %w: f32[2,17000000]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,17000000] = fill {shape=[2,17000000], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
