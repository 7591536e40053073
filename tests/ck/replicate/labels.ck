# A mean over labels that count divides by those of all replicas, and so does
# its adjoint; gradients are added up once.
# run: --passes=replicate,autodiff,optim --dp=auto --optimizer=sgd
graph @f {
	props static canon loss
	input %x: f32[4,8]
	input %labels: i64[4]
	param %w: f32[8,5]
	%z: f32[4,5] = matmul %x, %w
	%loss: f32[] output, _, _ = sce %z, %labels {reduction=1, ignore=-100}
	loss %loss
}
# check: input %x: f32[4,8] batch 0
# check: %t10: f32[] = reduce_sum %t9 {keepdims=0}
# check: %t11: f32[] = all_reduce %t10 {side=1, group=1}
# check: %loss.part: f32[], %t17: f32[4], %t18: f32[] = sce %z, %labels {reduction=2, ignore=-100}
# check: %loss.part.2: f32[] = div %loss.part, %t11
# check: %loss: f32[] output = all_reduce %loss.part.2 {group=1}
# check: %d.loss.part: f32[] adjoint %loss.part = div %d.loss, %t11 @backward
# check: %d.w.sum: f32[8,5] param %w adjoint %w = all_reduce %d.w {group=1} @update
# check-count: 3 all_reduce
