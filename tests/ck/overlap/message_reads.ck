# A gather of what another one gathers is not in its message.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2 exactly
	props canon loss bwd upd fused
	input %x: f32[8,8]
	param %u: f32[1,32] shard [8,8]
	param %v: f32[1,16] shard [1,32]
	%b: f32[1,32] = gather_pieces %v {axis=1, segment=[32], shape=[1,32]}
	%d: f32[8,8] = gather_pieces %u {axis=1, segment=[64], shape=[8,8]}
	%c: f32[8,8] = gather_pieces %b {axis=1, segment=[64], shape=[8,8]}
	%e: f32[8,8] = matmul %x, %x
	%f: f32[8,8] = matmul %e, %d
	%g: f32[8,8] output = matmul %f, %c
}
# check: %b: f32[1,32] bytes 128 = gather_pieces %v {axis=1, segment=[32], shape=[1,32]}
# check: %d: f32[8,8] bytes 256 = gather_pieces %u {axis=1, segment=[64], shape=[8,8]} wait %e
# check: %c: f32[8,8] bytes 256 = gather_pieces %b {axis=1, segment=[64], shape=[8,8]} wait %f
