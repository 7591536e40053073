# Cut over ranks, the scaled seed goes to every chunk, over the count of labels.
# run: --tp 2 --passes=canon,shard,autodiff,optim,fuse
# check: %d.loss: f32[] adjoint %loss = loss_scale @backward
# check: = loop %d.loss,
# check: t0: f32 = div a0, a1
# check: = sce_grad %t28,
graph @f {
	props static loss
	input %x: f16[6,8]
	input %labels: i64[6]
	param %w: f16[8,10]
	%z: f16[6,10] = matmul %x, %w
	%wide: f32[6,10] = cast %z {to=f32}
	%loss: f32[] output, %lse: f32[6], %denom: f32[] = sce %wide, %labels {ignore=-100}
	loss %loss
}
