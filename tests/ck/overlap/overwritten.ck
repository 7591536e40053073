# Nothing goes behind a transfer past a node that overwrites memory: the product reads the sum before more is added to it.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2
	props canon loss bwd upd fused
	input %x: f32[64,64]
	input %d: f32[64,64]
	param %w: f32[64,64]
	state %g: f32[64,64] param %w state grad
	%y: f32[64,64] = matmul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%before: f32[64,64] output = matmul %g, %d @backward
	%more: f32[64,64] = accumulate %g, %d @backward
	%dx: f32[64,64] = matmul %d, %w {tb=1} @backward
	%sum: f32[64,64] = all_reduce %dx {group=1} @backward
	%e: f32[64,64] output = softmax %sum {axis=1} @backward
	loss %loss
}
# check: %before: f32[64,64] output bytes 16384 = matmul %g, %d @backward
# check: %more: f32[64,64] bytes 16384 = accumulate %g, %d @backward
# check: %dx: f32[64,64] bytes 16384 = matmul
# check-not: wait
# check: %e: f32[64,64] output bytes 16384 = softmax
