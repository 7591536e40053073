# A gather of a parameter's shards begins as long before its first reader as it takes, with the cast of the shard that
# it sends; the one before it is not put off by that.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2 exactly
	props canon loss bwd upd fused
	input %x: f32[64,64]
	param %u: f32[64,64]
	param %v: f32[1,2048] shard [64,64]
	param %w: f32[1,2048] shard [64,64]
	%a: f32[64,64] = matmul %x, %u
	%v.whole: f32[64,64] = gather_pieces %v {axis=1, segment=[4096], shape=[64,64]}
	%b: f32[64,64] = matmul %a, %v.whole
	%c: f32[64,64] = softmax %b {axis=1}
	%w.piece: bf16[1,2048] shard [64,64] = cast %w {to=bf16}
	%w.whole: bf16[64,64] = gather_pieces %w.piece {axis=1, segment=[4096], shape=[64,64]}
	%w.wide: f32[64,64] = cast %w.whole {to=f32}
	%d: f32[64,64] = matmul %c, %w.wide
	%loss: f32[] output = reduce_sum %d {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %v.whole: f32[64,64] bytes 16384 = gather_pieces %v
# check: %a: f32[64,64] bytes 16384 = matmul %x, %u
# check: %w.piece: bf16[1,2048] shard [64,64] bytes 4096 = cast %w {to=bf16}
# check: %w.whole: bf16[64,64] bytes 8192 = gather_pieces %w.piece {axis=1, segment=[4096], shape=[64,64]} wait %c
# check: %b: f32[64,64] bytes 16384 = matmul %a, %v.whole
