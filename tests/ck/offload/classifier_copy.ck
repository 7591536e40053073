# A classifier reads its float32 weight, so that copies which nobody asked for change no bit; then the weight stays,
# its copy is not used.
# run: --dtype=bf16 --passes=precision,autodiff,optim,fuse,offload --offload state
# check: param %w: f32[64,512]
# check: classifier %
# check-count: 1 copy.w
graph @f {
	input %x: f32[32,64]
	input %labels: i64[32]
	param %w: f32[64,512]
	%y = matmul %x, %w
	%loss: f32[] output, %lse, %den = sce %y, %labels
	loss %loss
}
