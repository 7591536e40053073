# Without host memory for parameters and all states there are no copies.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state --host-memory 196799B
# run: --dtype=bf16 --resident-copies=off --passes=precision,autodiff,optim,fuse,offload --offload state
# check: param %w: f32[128,128]
# check: state %adamw.m.w: f32[128,128] host
# check: state %adamw.v.w: f32[128,128] host
# check-count: 2 = fetch
# check-count: 0 copy.w
graph @f {
	input %x: f32[2,128]
	param %w: f32[128,128]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
