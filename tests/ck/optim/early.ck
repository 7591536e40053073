# Update in backward: w2 is done when its last reader is; w1 must wait for the
# backward node that reads a value computed from it.
# run: --passes=optim --optimizer sgd --update-in-backward on
graph @f {
	props canon loss bwd
	input %x: f32[2,4]
	param %w1: f32[4,4]
	param %w2: f32[4,4]
	%h = matmul %x, %w1
	%y = matmul %h, %w2
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dh = matmul %dy, %w2 {tb=1} @backward
	%dw1 param %w1 = matmul %x, %dh {ta=1} @backward
	%dw2 param %w2 = matmul %h, %dy {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %w1: f32[4,4]
# 	param %w2: f32[4,4]
# 	%h: f32[2,4] = matmul %x, %w1
# 	%y: f32[2,4] = matmul %h, %w2
# 	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
# 	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
# 	%dh: f32[2,4] = matmul %dy, %w2 {tb=1} @backward
# 	%dw1: f32[4,4] param %w1 = matmul %x, %dh {ta=1} @backward
# 	%dw2: f32[4,4] param %w2 = matmul %h, %dy {ta=1} @backward
# 	%w1.next: f32[4,4] = sgd %w1, %dw1 @update
# 	%w2.next: f32[4,4] = sgd %w2, %dw2 @update
# 	loss %loss
# }
