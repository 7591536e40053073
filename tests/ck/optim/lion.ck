# Lion keeps one average.
# run: --passes=optim --optimizer lion
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
# check: state %lion.m.w: f32[4,4] param %w state m
# check: %w.next: f32[4,4], %lion.m.w.next: f32[4,4] = lion %w, %dw, %lion.m.w, %grad_norm @update
