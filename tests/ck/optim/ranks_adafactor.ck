# Of parameters that are cut Adafactor takes means over all pieces: of those of a
# matrix over rows or columns, whichever are cut, of every one the mean squares;
# all in one collective each round.  A dim that is not cut is complete.
# run: --passes=optim --optimizer adafactor
# check: state %adafactor.v.b: f32[2] param %b state v placement 0 [4]
# check: state %adafactor.row.w: f32[4] param %w state row
# check: state %adafactor.col.w: f32[2] param %w state col placement 0 [4]
# check: state %adafactor.row.e: f32[2,1] param %e state row placement 1 [2]
# check: state %adafactor.col.e: f32[2,3] param %e state col
# check: %w.row_mean: f32[4] placement partial, %w.col_mean: f32[2] placement 0 [4] = adafactor_means %dw, %grad_norm @update
# check: %e.row_mean: f32[2,1] placement 1 [2], %e.col_mean: f32[2,3] placement partial = adafactor_means %de, %grad_norm @update
# check: %means: f32[10] placement partial = concat %w.row_mean,
# check: %means.sum: f32[10] = all_reduce %means @update
# check: %b.squares: f32[2] placement partial = adafactor_squares %b, %db, %adafactor.v.b, _, _, _, %grad_norm @update
# check: %w.squares: f32[2] placement partial = adafactor_squares %w, %dw, %adafactor.row.w, %adafactor.col.w,
# check: = concat %b.squares, %w.squares, %e.squares @update
# check: = all_reduce %means.2 @update
# check: = adafactor %b, %db, %adafactor.v.b, _, _, _, %t
# check: = adafactor %w, %dw, %adafactor.row.w, %adafactor.col.w, %t
graph @f {
	ranks 2
	props canon loss bwd
	param %b: f32[2] placement 0 [4]
	param %w: f32[4,2] placement 1 [4]
	param %e: f32[2,1,3] placement 1 [2]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%db: f32[2] placement 0 [4] param %b = fill {shape=[2], value=1} @backward
	%dw: f32[4,2] placement 1 [4] param %w = fill {shape=[4,2], value=1} @backward
	%de: f32[2,1,3] placement 1 [2] param %e = fill {shape=[2,1,3], value=1} @backward
	loss %loss
}
