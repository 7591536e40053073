# The seed of a scaled loss is an operand: what is known at run time only does not keep the classifier from being one node.
# run: --passes=canon,autodiff,fuse
# check: %d.loss: f32[] adjoint %loss = loss_scale @backward
# check: = classifier %x, %w, %labels, _, %d.loss {chunk=4} @backward
# check-not: sce
graph @f {
	props static canon loss
	param %x: f16[4,6]
	input %labels: i64[4]
	param %w: f16[8,6]
	%logits: f16[4,8] = matmul %x, %w {tb=1}
	%wide: f32[4,8] = cast %logits {to=f32}
	%loss: f32[] output, %lse, %den = sce %wide, %labels
	loss %loss
}
