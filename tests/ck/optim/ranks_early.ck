# Update in backward: each sum over ranks stands right behind its gradient.
# run: --passes=optim --optimizer sgd --update-in-backward on
graph @f {
	ranks 2
	props canon loss bwd
	input %x: f32[4,6]
	param %s: f32[6] placement replicate_partial
	param %t: f32[6] placement replicate_partial
	param %w: f32[6,4] placement 1 [8]
	%xs placement replicate_partial = mul %x, %s
	%xt placement replicate_partial = add %xs, %t
	%h placement 1 [8] = matmul %xt, %w
	%l0 placement partial = reduce_sum %h {axes=[0,1], keepdims=0}
	%loss output = all_reduce %l0
	%dh: f32[4,4] placement 1 [8] = fill {shape=[4,4], value=1} @backward
	%dw placement 1 [8] param %w = matmul %xt, %dh {ta=1} @backward
	%dxs placement partial = matmul %dh, %w {tb=1} @backward
	%dt placement partial param %t = reduce_sum %dxs {axes=[0], keepdims=0} @backward
	%dxx placement partial = mul %dxs, %x @backward
	%ds placement partial param %s = reduce_sum %dxx {axes=[0], keepdims=0} @backward
	loss %loss
}
# check: %dt: f32[6] placement partial = reduce_sum
# check: %dt.sum: f32[6] param %t = all_reduce %dt @backward
# check: %t.next: f32[6] placement replicate_partial = sgd %t, %dt.sum @update
# check: %ds: f32[6] placement partial = reduce_sum
# check: %ds.sum: f32[6] param %s = all_reduce %ds @backward
# check: %s.next: f32[6] placement replicate_partial = sgd %s, %ds.sum @update
# check-count: 2 all_reduce %d
# check-count: 0 grad_norm
