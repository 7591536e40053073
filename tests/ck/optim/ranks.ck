# A sharded graph: whole parameters that ranks share the work of (s, t) have
# gradients that are added up over ranks, together, behind accumulation; b's
# is complete, and so are pieces' (w1, w2).
# run: --passes=optim --optimizer lion --grad-accum 2
graph @f {
	ranks 2
	props canon loss bwd
	input %x: f32[4,6]
	param %s: f32[1,6] placement replicate_partial
	param %t: f32[6] placement replicate_partial
	param %w1: f32[6,4] placement 1 [8]
	param %w2: f32[4,6] placement 0 [8]
	param %b: f32[6]
	%xs placement replicate_partial = mul %x, %s
	%xt placement replicate_partial = add %xs, %t
	%h placement 1 [8] = matmul %xt, %w1
	%y0 placement partial = matmul %h, %w2
	%y1 = all_reduce %y0
	%y = add %y1, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[4,6] = fill {shape=[4,6], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw2 placement 0 [8] param %w2 = matmul %h, %dy {ta=1} @backward
	%dh placement 1 [8] = matmul %dy, %w2 {tb=1} @backward
	%dw1 placement 1 [8] param %w1 = matmul %xt, %dh {ta=1} @backward
	%dxs placement partial = matmul %dh, %w1 {tb=1} @backward
	%dt placement partial param %t = reduce_sum %dxs {axes=[0], keepdims=0} @backward
	%dxx placement partial = mul %dxs, %x @backward
	%ds placement partial param %s = reduce_sum %dxx {axes=[0], keepdims=1} @backward
	loss %loss
}
# check: state %grad.b: f32[6] param %b state grad
# check: state %grad.w2: f32[4,6] param %w2 state grad placement 0 [8]
# check: state %grad.t: f32[6] param %t state grad placement partial
# check: state %lion.m.w1: f32[6,4] param %w1 state m placement 1 [8]
# check: state %lion.m.s: f32[1,6] param %s state m
# check: %grad.b.next: f32[6] param %b = accumulate %grad.b, %db @backward
# check: %grad.w2.next: f32[4,6] param %w2 placement 0 [8] = accumulate %grad.w2, %dw2 @backward
# check: %grad.s.next: f32[1,6] placement partial = accumulate %grad.s, %ds @backward
# check: %t33: f32[6] placement partial = reshape %grad.s.next {shape=[6]} @update
# check: %grads: f32[12] placement partial = concat %grad.t.next, %t33 @update
# check: %grads.sum: f32[12] = all_reduce %grads @update
# check: %grad.t.next.sum: f32[6] param %t = slice %grads.sum {start=[0], step=[1]} @update
# check: %t37: f32[6] = slice %grads.sum {start=[6], step=[1]} @update
# check: %grad.s.next.sum: f32[1,6] param %s = reshape %t37 {shape=[1,6]} @update
# check: %t39: f32[] placement partial = sum_squares %grad.w2.next, %grad.w1.next @update
# check: %t40: f32[] = all_reduce %t39 @update
# check: %grad_norm: f32[] = grad_norm %grad.b.next, %grad.t.next.sum, %grad.s.next.sum, %t40 {sums=1} @update
# check: %b.next: f32[6], %lion.m.b.next: f32[6] = lion %b, %grad.b.next, %lion.m.b, %grad_norm @update
# check: %w2.next: f32[4,6] placement 0 [8], %lion.m.w2.next: f32[4,6] placement 0 [8] = lion %w2, %grad.w2.next, %lion.m.w2, %grad_norm @update
# check: %w1.next: f32[6,4] placement 1 [8], %lion.m.w1.next: f32[6,4] placement 1 [8] = lion %w1, %grad.w1.next, %lion.m.w1, %grad_norm @update
# check: %t.next: f32[6] placement replicate_partial, %lion.m.t.next: f32[6] = lion %t, %grad.t.next.sum, %lion.m.t, %grad_norm @update
# check: %s.next: f32[1,6] placement replicate_partial, %lion.m.s.next: f32[1,6] = lion %s, %grad.s.next.sum, %lion.m.s, %grad_norm @update
