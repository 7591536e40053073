# Replicas shard the state: a shard of the sum of gradients where it
# appears, of the parameter and the states; the new piece goes to all.  What is
# small stays whole.  Clipping counts every gradient once.
# run: --passes=optim --dp 2 --zero 1
# check: adamw.m.w: f32[1,35]
# check: shard [7,10]
# check: state %adamw.m.b: f32[1]
# check: = reduce_scatter %dw {axis=1, segment=[70], group=1} @backward
# check: = all_reduce %db {group=1} @update
# check: = sum_squares
# check: = all_reduce
# check: = grad_norm %db.sum,
# check: = own %w {axis=1, segment=[70], group=1} @update
# check: = adamw %w.own, %dw.sum,
# check: = gather_into %w, %w.own.next {axis=1, segment=[70]} @update
graph @f {
	replicas 2 exactly
	props canon loss bwd
	param %w: f32[7,10]
	param %b: f32[1]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[7,10] param %w = fill {shape=[7,10], value=1} @backward
	%db: f32[1] param %b = fill {shape=[1], value=1} @backward
	loss %loss
}
