# Passes that append do so once.
# run: --passes=autodiff
# error: pass autodiff has already run on this graph
graph @f {
	props bound static canon loss bwd
	input %x: f32[2,4]
	param %w: f32[4,4]
	%y = matmul %x, %w
	%l output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %l
}
