# Logits of which a rank has half the classes are made, used and dropped a chunk of rows after the other.
# run: --passes=fuse
# check-count: 7 = vocab_stats
# check-count: 7 = all_gather
# check-count: 7 = sce_grad
# check-count: 7 {ta=1}
# check: %dw: f32[25129,6] param %w placement 0 [50257] = matmul
# check: %dp: f32[4096,6] placement partial = concat
# check-not: f32[4096,25129]
graph @f {
	ranks 2
	input %x: f32[4096,6]
	input %labels: i64[4096]
	param %w: f32[25129,6] placement 0 [50257]
	param %b: f32[25129] placement 0 [50257]
	%xr: f32[4096,6] placement replicate_partial = replicate %x
	%logits: f32[4096,25129] placement 1 [50257] = matmul %xr, %w, %b {tb=1}
	%st: f32[1,4096,3] placement 0 [2] = vocab_stats %logits, %labels {whole_extent=50257}
	%stats: f32[2,4096,3] = all_gather %st {axis=0, segment=[2]}
	%loss: f32[] output, %lse, %den = sce %logits, %labels, _, %stats {ignore=-100, whole_extent=50257}
	%seed = fill {value=1.0} @backward
	%dl: f32[4096,25129] placement 1 [50257] = sce_grad %seed, %logits, %labels, %lse, %den {ignore=-100, whole_extent=50257} @backward
	%dp: f32[4096,6] placement partial = matmul %dl, %w @backward
	%dx: f32[4096,6] output = all_reduce %dp @backward
	%dw: f32[25129,6] param %w placement 0 [50257] = matmul %dl, %xr {ta=1} @backward
	%db: f32[25129] param %b placement 0 [50257] = reduce_sum %dl {axes=[0], keepdims=0} @backward
	loss %loss
}
