# The states of a replica's shard; of 64 KiB, which the shard of a larger whole is not.
# run: --passes=optim,fuse,offload --dp 2 --zero 1 --offload state
# check: state %adamw.m.w: f32[1,16384] host
# check: shard [128,256]
# check: state %adamw.m.u: f32[1,12288] param
# check: %adamw.m.w.fetched: f32[1,16384] shard [128,256] = fetch %adamw.m.w @update
# check: = adamw %w.own, %dw.sum, %adamw.m.w.fetched, %adamw.v.w.fetched
# check: %adamw.m.w.offloaded: f32[1,16384] host shard [128,256] = offload_into %adamw.m.w, %adamw.m.w.next @update
# check: = gather_into %w, %w.own.next
graph @f {
	replicas 2 exactly
	props canon loss bwd
	param %w: f32[128,256]
	param %u: f32[128,192]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[128,256] param %w = fill {shape=[128,256], value=1} @backward
	%du: f32[128,192] param %u = fill {shape=[128,192], value=1} @backward
	loss %loss
}
