# Too little host memory for any state.
# run: --passes=optim,fuse,offload --offload state --host-memory 65599B
# check: = adamw %w, %dw, %adamw.m.w, %adamw.v.w, %grad_norm
# check-count: 0 host
graph @f {
	props canon loss bwd
	input %x: f32[2,128]
	param %w: f32[128,128]
	param %b: f32[128]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,128] = fill {shape=[2,128], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
