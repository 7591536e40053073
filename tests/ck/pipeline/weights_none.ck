# Under 1F1B, where there are no slots of weight turns, backward is one turn.
# run: --passes=weights --optimizer none
graph @f {
	stage 1 3 2
	props canon loss bwd upd fused
	param %w: f32[8,8]
	%x: f32[8,8] = receive {tag=0, dt=f32, shape=[8,8], adjoint=1}
	%y: f32[8,8] = matmul %x, %w
	_ = send %y {peer=2, tag=1}
	%dy: f32[8,8] = receive {peer=2, tag=2, dt=f32, shape=[8,8]} @backward
	%dw: f32[8,8] output = matmul %x, %dy {ta=1} @backward
	%dx: f32[8,8] = matmul %dy, %w {tb=1} @backward
	_ = send %dx {tag=3} @backward
}
# check-count: 0 @weight
# check: stage 1 3 2
