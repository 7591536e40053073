# The last linear, its loss and their gradients become one node.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,6]
# 	input %labels: i64[4]
# 	param %w: f32[8,6]
# 	param %b: f32[8]
# 	%loss: f32[] output, %dx: f32[4,6] output, %dw: f32[8,6] param %w, %db: f32[8] param %b = classifier %x, %w, %labels, %b {ignore=-100, chunk=4, seed=0.25} @backward from "head" Gemm, "ce" SoftmaxCrossEntropyLoss
# 	loss %loss
# }
graph @f {
	input %x: f32[4,6]
	input %labels: i64[4]
	param %w: f32[8,6]
	param %b: f32[8]
	%logits = matmul %x, %w, %b {tb=1} from "head" Gemm
	%loss: f32[] output, %lse, %den = sce %logits, %labels {ignore=-100} from "ce" SoftmaxCrossEntropyLoss
	%seed = fill {value=0.25} @backward
	%dl = sce_grad %seed, %logits, %labels, %lse, %den {ignore=-100} @backward
	%dx output = matmul %dl, %w @backward
	%dw: f32[8,6] param %w = matmul %dl, %x {ta=1} @backward
	%db: f32[8] param %b = reduce_sum %dl {axes=[0], keepdims=0} @backward
	loss %loss
}
