# A line of small gradients has a limit: eight of almost 1 MiB.
# run: --passes=optim --optimizer sgd
graph @f {
	ranks 2
	props canon loss bwd
	param %p0: f32[512,511] placement replicate_partial
	param %p1: f32[512,511] placement replicate_partial
	param %p2: f32[512,511] placement replicate_partial
	param %p3: f32[512,511] placement replicate_partial
	param %p4: f32[512,511] placement replicate_partial
	param %p5: f32[512,511] placement replicate_partial
	param %p6: f32[512,511] placement replicate_partial
	param %p7: f32[512,511] placement replicate_partial
	param %p8: f32[512,511] placement replicate_partial
	param %p9: f32[512,511] placement replicate_partial
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%u: f32[1,512,511] placement 0 [2] = fill {shape=[1,512,511], value=1} @backward
	%g0 placement partial param %p0 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g1 placement partial param %p1 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g2 placement partial param %p2 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g3 placement partial param %p3 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g4 placement partial param %p4 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g5 placement partial param %p5 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g6 placement partial param %p6 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g7 placement partial param %p7 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g8 placement partial param %p8 = reduce_sum %u {axes=[0], keepdims=0} @backward
	%g9 placement partial param %p9 = reduce_sum %u {axes=[0], keepdims=0} @backward
	loss %loss
}
# check: concat %t
# check-count: 2 = concat
# check-count: 2 = all_reduce
# check: %g8.sum: f32[512,511] param %p8 = reshape
