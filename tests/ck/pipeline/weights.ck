# Backward of a stage: what it sends, and what that depends on, comes first; products for gradients of parameters, and
# the sums of these, may wait.
# run: --passes=weights --optimizer none
graph @f {
	stage 1 3 2 weight 3 2
	props canon loss bwd upd fused
	param %w: f32[8,8]
	state %grad: f32[8,8] param %w state grad
	%x: f32[8,8] = receive {tag=0, dt=f32, shape=[8,8], adjoint=1}
	%y: f32[8,8] = matmul %x, %w
	_ = send %y {peer=2, tag=1}
	%dy: f32[8,8] = receive {peer=2, tag=2, dt=f32, shape=[8,8]} @backward
	%dw: f32[8,8] = matmul %x, %dy {ta=1} @backward
	%sum: f32[8,8] = accumulate %grad, %dw @backward
	%dx: f32[8,8] = matmul %dy, %w {tb=1} @backward
	_ = send %dx {tag=3} @backward
}
# check: %dy: f32[8,8] = receive {peer=2, tag=2, dt=f32, shape=[8,8]} @backward
# check: %dx: f32[8,8] = matmul %dy, %w {tb=1} @backward
# check: send %dx {tag=3} @backward
# check: %dw: f32[8,8] = matmul %x, %dy {ta=1} @weight
# check: %sum: f32[8,8] = accumulate %grad, %dw @weight
