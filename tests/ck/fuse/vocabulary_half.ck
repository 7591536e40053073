# Of 16-bit logits, too, cut over ranks, what chunks of rows add up to is summed in float32 and rounded at the end.
# run: --tp 3 --passes=canon,shard,autodiff,optim,fuse
# check: %t33: f32[], %t34: f32[6], %t35: f32[] = sce %t30, %labels, _, %t32 {reduction=2
# check: t1: bf16 = cast t0 {to=bf16}
# check: give t1
# check-not: bf16 = div
graph @f {
	props static loss
	input %x: bf16[6,8]
	input %labels: i64[6]
	param %w: bf16[8,10]
	%z: bf16[6,10] = matmul %x, %w
	%loss: bf16[] output, %lse: f32[6], %denom: f32[] = sce %z, %labels {ignore=-100}
	loss %loss
}
