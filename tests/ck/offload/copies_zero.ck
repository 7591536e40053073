# The shard of a parameter, of which the copy is gathered; of an optimizer without states, too.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --optimizer sgd --dp 2 --zero 1 --offload state
# check: param %w: f32[1,32768] host shard [256,256]
# check: state %copy.w: bf16[1,32768] param %w state copy shard [256,256]
# check: = gather_pieces %copy.w
# check: %w.fetched: f32[1,32768] shard [256,256] = fetch %w @update
# check: = sgd %w.fetched, %
# check: %w.offloaded: f32[1,32768] host shard [256,256] = offload_into %w, %w.next @update
# check-count: 1 %copy.w {
graph @f {
	replicas 2 exactly
	input %x: f32[2,256]
	param %w: f32[256,256]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
