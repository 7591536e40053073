# A transfer of a stage's backward turn ends there, although only its weight turn reads what comes: other micro-batches
# run in between.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2
	stage 0 2 2 weight 2 1
	props canon loss bwd upd fused
	input %x: f32[64,64]
	input %d: f32[64,64]
	param %w: f32[64,64]
	%y: f32[64,64] = matmul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dx: f32[64,64] = matmul %d, %w {tb=1} @backward
	%sum: f32[64,64] = all_reduce %dx {group=1} @backward
	%e: f32[64,64] output = softmax %d {axis=1} @backward
	%dw: f32[64,64] output = matmul %x, %d {ta=1} @weight
	%z: f32[64,64] output = softmax %sum {axis=1} @weight
	loss %loss
}
# check: %sum: f32[64,64] bytes 16384 = all_reduce %dx {group=1} @backward wait %e
