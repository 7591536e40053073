# Gradients of a product of experts: sums of each expert's rows, and the same
# product the other way round.
# run: --passes=autodiff
graph @f {
	input %i: i64[6]
	param %w: f32[5,7,4]
	param %x: f32[6,4]
	%h = tanh %x
	%y = expert_matmul %h, %w, %i {tb=1}
	%loss output = reduce_mean %y {keepdims=0}
	loss %loss
}
# check: %d.w: f32[5,7,4] param %w adjoint %w = expert_dw %d.y, %h, %i {experts=5}
# check: %d.h: f32[6,4] adjoint %h = expert_matmul %d.y, %w, %i @backward
