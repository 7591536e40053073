# States in other types than the parameter's do not pass in parts: rounding draws by the index in the whole.
# run: --passes=optim,fuse,offload --offload state --state-dtype bf16
# check-count: 0 slice
# check-count: 2 = fetch
graph @f {
	props canon loss bwd
	input %x: f32[2,4096]
	param %w: f32[4096,6001]
	param %b: f32[6001]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,6001] = fill {shape=[2,6001], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
