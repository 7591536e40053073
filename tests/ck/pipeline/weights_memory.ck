# Two nodes that accumulate into the same memory are in one turn: other micro-batches run between two. The message takes
# the first one, so that the second is no weight node either, nor is what it adds.
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
	%other: f32[8,8] = matmul %x, %x @backward
	%late: f32[8,8] = accumulate %grad, %other @backward
	%dx: f32[8,8] = matmul %late, %w {tb=1} @backward
	%dw: f32[8,8] = matmul %x, %dy {ta=1} @backward
	%sum: f32[8,8] = accumulate %late, %dw @backward
	_ = send %dx {tag=3} @backward
}
# check-count: 0 @weight
