# Copies that were asked for leave parameters behind states of their size.
# run: --dtype=bf16 --resident-copies=on --passes=precision,autodiff,optim,fuse,offload --offload state --host-memory 140000B
# check: param %w: f32[128,128]
# check: state %adamw.m.w: f32[128,128] host
# check: state %adamw.v.w: f32[128,128] host
# check-count: 2 = fetch
# check: , %copy.w @update
graph @f {
	input %x: f32[2,128]
	param %w: f32[128,128]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
