# A line of small gradients has a limit: eight of almost 1 MiB.
# run: --passes=optim --optimizer sgd
graph @f {
	ranks 2
	props canon loss bwd
	param %p0: f32[512,511] split r
	param %p1: f32[512,511] split r
	param %p2: f32[512,511] split r
	param %p3: f32[512,511] split r
	param %p4: f32[512,511] split r
	param %p5: f32[512,511] split r
	param %p6: f32[512,511] split r
	param %p7: f32[512,511] split r
	param %p8: f32[512,511] split r
	param %p9: f32[512,511] split r
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%g0 param %p0 = fill {shape=[512,511], value=1} @backward
	%g1 param %p1 = fill {shape=[512,511], value=1} @backward
	%g2 param %p2 = fill {shape=[512,511], value=1} @backward
	%g3 param %p3 = fill {shape=[512,511], value=1} @backward
	%g4 param %p4 = fill {shape=[512,511], value=1} @backward
	%g5 param %p5 = fill {shape=[512,511], value=1} @backward
	%g6 param %p6 = fill {shape=[512,511], value=1} @backward
	%g7 param %p7 = fill {shape=[512,511], value=1} @backward
	%g8 param %p8 = fill {shape=[512,511], value=1} @backward
	%g9 param %p9 = fill {shape=[512,511], value=1} @backward
	loss %loss
}
# check: concat %t
# check-count: 2 = concat
# check-count: 2 = all_reduce
# check: %g8.sum: f32[512,511] param %p8 = reshape
