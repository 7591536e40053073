# In backward the gradient of a weight goes behind where the sum over ranks of the input's gradient begins, which ends
# before the first node that needs it; the other product, which nobody has to wait for, stays.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2
	props canon loss bwd upd fused
	input %x: f32[64,64]
	input %d: f32[64,64]
	param %w: f32[64,64]
	%y: f32[64,64] = matmul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dw: f32[64,64] output = matmul %x, %d {ta=1} @backward
	%dx: f32[64,64] = matmul %d, %w {tb=1} @backward
	%sum: f32[64,64] = all_reduce %dx {group=1} @backward
	%e: f32[64,64] output = softmax %sum {axis=1} @backward
	loss %loss
}
# check: %sum: f32[64,64] bytes 16384 = all_reduce %dx {group=1} @backward wait %dw
