# A gradient of 1 MiB travels alone, and so does the only one of its type.
# run: --passes=optim --optimizer sgd
graph @f {
	ranks 4
	props canon loss bwd
	param %big: f32[512,512] placement replicate_partial
	param %a: f32[3,2] placement replicate_partial
	param %b: f32[5] placement replicate_partial
	param %half: bf16[5] placement replicate_partial
	param %cut: f32[2,2] placement 1 [8]
	param %two: f32[4] placement 0 [8,8]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%u1: f32[1,512,512] placement 0 [4] = fill {shape=[1,512,512], value=1} @backward
	%g1 placement partial param %big = reduce_sum %u1 {axes=[0], keepdims=0} @backward
	%u2: f32[1,3,2] placement 0 [4] = fill {shape=[1,3,2], value=1} @backward
	%g2 placement partial param %a = reduce_sum %u2 {axes=[0], keepdims=0} @backward
	%u3: f32[1,5] placement 0 [4] = fill {shape=[1,5], value=1} @backward
	%h4 placement partial = reduce_sum %u3 {axes=[0], keepdims=0} @backward
	%g4 placement partial param %half = cast %h4 {to=4} @backward
	%g5: f32[2,2] placement 1 [8] param %cut = fill {shape=[2,2], value=1} @backward
	%g3 placement partial param %b = reduce_sum %u3 {axes=[0], keepdims=0} @backward
	%g7: f32[4] placement 0 [8,8] param %two = fill {shape=[4], value=1} @backward
	loss %loss
}
# check: %t19: f32[6] placement partial = reshape %g2 {shape=[6]} @update
# check: %grads: f32[11] placement partial = concat %t19, %g3 @update
# check: %grads.sum: f32[11] = all_reduce %grads @update
# check: %t22: f32[6] = slice %grads.sum {start=[0], step=[1]} @update
# check: %g2.sum: f32[3,2] param %a = reshape %t22 {shape=[3,2]} @update
# check: %g3.sum: f32[5] param %b = slice %grads.sum {start=[6], step=[1]} @update
# check: %g4.sum: bf16[5] param %half = all_reduce %g4 @update
# check: %g1.sum: f32[512,512] param %big = all_reduce %g1 @update
# check: %t27: f32[] placement partial = sum_squares %g5, %g7 @update
# check: %t28: f32[] = all_reduce %t27 @update
# check: %grad_norm: f32[] = grad_norm %g1.sum, %g2.sum, %g4.sum, %g3.sum, %t28 {sums=1} @update
# check: %big.next: f32[512,512] placement replicate_partial = sgd %big, %g1.sum, %grad_norm @update
# check: %a.next: f32[3,2] placement replicate_partial = sgd %a, %g2.sum, %grad_norm @update
# check: %half.next: bf16[5] placement replicate_partial = sgd %half, %g4.sum, %grad_norm @update
# check: %cut.next: f32[2,2] placement 1 [8] = sgd %cut, %g5, %grad_norm @update
# check: %b.next: f32[5] placement replicate_partial = sgd %b, %g3.sum, %grad_norm @update
# check: %two.next: f32[4] placement 0 [8,8] = sgd %two, %g7, %grad_norm @update
