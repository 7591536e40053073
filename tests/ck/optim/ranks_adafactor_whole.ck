# Of whole parameters Adafactor takes means on every rank alike.
# run: --passes=optim --optimizer adafactor
graph @f {
	ranks 2
	props canon loss bwd
	param %b: f32[3,4] placement replicate_partial
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%u: f32[1,3,4] placement 0 [2] = fill {shape=[1,3,4], value=1} @backward
	%db placement partial param %b = reduce_sum %u {axes=[0], keepdims=0} @backward
	loss %loss
}
# check: %db.sum: f32[3,4] param %b = all_reduce %db @update
# check: = adafactor %b, %db.sum, %adafactor.row.b, %adafactor.col.b, _, _, _, %grad_norm @update
