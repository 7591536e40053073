# A loss is one number.
# run: --passes=context --cp 2 --cp-dim ids=0
# error: --cp 2: loss 'loss' has one value per position, expected a sum or mean over positions
graph @f {
	input %ids: i64[4]
	param %w: f32[5]
	%loss output = gather %w, %ids
	loss %loss
}
