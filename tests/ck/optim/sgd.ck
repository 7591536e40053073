# Plain gradient descent has no states.
# run: --passes=optim --optimizer sgd
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
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %w: f32[4,4]
# 	%y: f32[2,4] = matmul %x, %w
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
# 	%dw: f32[4,4] param %w = matmul %x, %dy {ta=1} @backward
# 	%grad_norm: f32[] = grad_norm %dw @update
# 	%w.next: f32[4,4] = sgd %w, %dw, %grad_norm @update
# 	loss %loss
# }
