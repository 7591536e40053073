# Replicas' pieces are stretches of elements: means of rows and columns are summed
# over replicas, which have all of them; a vector's are cut as it is.
# run: --passes=optim --dp 2 --zero 1 --optimizer adafactor
# check: state %adafactor.row.w: f32[7] param %w state row
# check: state %adafactor.col.w: f32[10] param %w state col
# check: state %adafactor.v.b: f32[15] param %b state v
# check: shard [30]
# check: %w.row_mean: f32[7], %w.col_mean: f32[10] = adafactor_means %dw.sum, %grad_norm @update
# check: = concat %w.row_mean, %w.col_mean @update
# check: = all_reduce %means {group=1} @update
# check: %w.own: f32[1,35]
# check: = adafactor_squares %w.own, %dw.sum, %adafactor.row.w, %adafactor.col.w, %t
# check: = concat
# check: = all_reduce %means.2 {group=1} @update
# check: = own %w {axis=1, segment=[70], group=1} @update
# check: = adafactor %w.own.2, %dw.sum, %adafactor.row.w, %adafactor.col.w, %t
# check: = gather_into %w, %w.own.2.next {axis=1, segment=[70]} @update
graph @f {
	replicas 2 exactly
	props canon loss bwd
	param %w: f32[7,10]
	param %b: f32[30]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[7,10] param %w = fill {shape=[7,10], value=1} @backward
	%db: f32[30] param %b = fill {shape=[30], value=1} @backward
	loss %loss
}
