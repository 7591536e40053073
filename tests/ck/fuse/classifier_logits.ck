# Logits that are wanted keep the nodes apart.
# run: --passes=fuse
# check: = sce
# check-not: classifier
graph @f {
	input %x: f32[4,6]
	input %labels: i64[4]
	param %w: f32[8,6]
	param %b: f32[8]
	%logits output = matmul %x, %w, %b {tb=1} from "head" Gemm
	%loss: f32[] output, %lse, %den = sce %logits, %labels {ignore=-100} from "ce" SoftmaxCrossEntropyLoss
	%seed = fill {value=0.25} @backward
	%dl = sce_grad %seed, %logits, %labels, %lse, %den {ignore=-100} @backward
	%dx output = matmul %dl, %w @backward
	%dw: f32[8,6] param %w = matmul %dl, %x {ta=1} @backward
	%db: f32[8] param %b = reduce_sum %dl {axes=[0], keepdims=0} @backward
	loss %loss
}
