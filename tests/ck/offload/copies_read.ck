# A loop reads the parameter in float32, so it stays, beside its copy; a small one stays, too.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state
# check: param %w: f32[128,128]
# check: param %u: f32[128,64]
# check: state %copy.w: bf16
# check: state %copy.u: bf16
# check: state %adamw.m.w: f32[128,128] host
# check: = adamw %u, %
# check: = adamw %w, %
# check-count: 2 = fetch
# check-count: 2 = offload_into
graph @f {
	input %x: f32[128,128]
	param %w: f32[128,128]
	param %u: f32[128,64]
	%h = matmul %x, %w
	%g = mul %h, %w
	%y = matmul %g, %u
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
