# Weights by each sample's index, elements of a table that is one for all, places
# of the largest.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,6]
	param %w: f32[6,5]
	const %table: f32[1,6] = {1, 2, 3, 4, 5, 6}
	const %none: f32[4,6] = splat 0
	%top: f32[4,2], %i: i64[4,2] = topk %x {k=2, axis=1}
	%tuples: i64[4,2,1] = reshape %i {shape=[4,2,1]}
	%e: f32[4,2,5] = gather_nd %w, %tuples
	%all: f32[4,6] = expand %table {shape=[4,6]}
	%t: f32[4,2] = gather_elements %all, %i {axis=1}
	%a: f32[4,6] = scatter_elements %none, %i, %t {axis=1}
	%s: f32[] = reduce_sum %e {axes=[0,1,2], keepdims=0}
	%m: f32[] = reduce_sum %a {axes=[0,1], keepdims=0}
	%loss: f32[] output = add %s, %m
	loss %loss
}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
