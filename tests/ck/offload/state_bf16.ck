# States in 16 bits.
# run: --passes=optim,fuse,offload --offload state --state-dtype bf16
# check: state %adamw.m.w: bf16[128,256] host
# check: %adamw.m.w.fetched: bf16[128,256] = fetch %adamw.m.w @update
# check: %adamw.v.w.offloaded: bf16[128,256] host = offload_into %adamw.v.w, %adamw.v.w.next @update
graph @f {
	props canon loss bwd
	input %x: f32[2,128]
	param %w: f32[128,256]
	param %b: f32[256]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,256] = fill {shape=[2,256], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
