# Extents that do not fit each other are said once, where they meet.
# run: --plan-only --dim b=4 --dim n=3
# run: --passes=bind --dim b=4 --dim n=3
# error: node 'loss' (sce): labels: expected i64[4], found i64[3]
graph @f {
	input %x: f32[b,4]
	input %labels: i64[n]
	param %w: f32[4,5]
	%z = matmul %x, %w
	%loss: f32[] output, _, _ = sce %z, %labels {reduction=1, ignore=-100}
	loss %loss
}
