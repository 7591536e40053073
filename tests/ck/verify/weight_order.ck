# Phase weight comes behind phase backward.
# run: --passes=none
# error: node of the backward phase after the start of the weight phase
graph @f {
	stage 1 3 2 weight 3 2
	param %w: f32[8,8]
	%x: f32[8,8] = receive {tag=0, dt=f32, shape=[8,8], adjoint=1}
	%y: f32[8,8] = matmul %x, %w
	_ = send %y {peer=2, tag=1}
	%dy: f32[8,8] = receive {peer=2, tag=2, dt=f32, shape=[8,8]} @backward
	%dw: f32[8,8] output = matmul %x, %dy {ta=1} @weight
	%dx: f32[8,8] = matmul %dy, %w {tb=1} @backward
	_ = send %dx {tag=3} @backward
}
