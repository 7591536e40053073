# The average of a parameter moves with the update that it reads, behind work that hides the sum of the gradient.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2 exactly
	props canon loss bwd upd fused
	input %x: f32[64,64]
	input %d: f32[64,64]
	param %u: f32[64,64]
	param %w: f32[1,2048] shard [64,64]
	state %m: f32[1,2048] param %w state m shard [64,64]
	state %ema: f32[1,2048] param %w state ema shard [64,64]
	%y: f32[64,64] = matmul %x, %u
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dw: f32[64,64] = matmul %x, %d {ta=1} @backward
	%dw.sum: f32[1,2048] param %w shard [64,64] = reduce_scatter %dw {axis=1, segment=[4096], group=1} @backward
	%w.next: f32[1,2048] shard [64,64], %m.next: f32[1,2048] shard [64,64] = sgdm %w, %dw.sum, %m @update
	%ema.next: f32[1,2048] shard [64,64] = ema %ema, %w.next @update
	%dx: f32[64,64] output = matmul %d, %u @backward
	%dz: f32[64,64] output = matmul %u, %d @backward
	%dv: f32[64,64] output = matmul %u, %x @backward
	loss %loss
}
# check: = reduce_scatter %dw {axis=1, segment=[4096], group=1} @backward wait %dx
# check: %dx: f32[64,64] output bytes 16384 = matmul %d, %u @backward
# check: = sgdm %w, %dw.sum, %m @update
# check: = ema %ema, %w.next @update
# check: %dz: f32[64,64] output bytes 16384 = matmul %u, %d @backward
