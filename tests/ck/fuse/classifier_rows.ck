# On a GPU chunks have multiples of 128 rows: 13 chunks of equal size would have
# 2521.
# run: --target=cuda --dtype=bf16 --passes=precision,autodiff,optim,fuse
# check: = classifier %t8, %copy.w, %labels {chunk=2560} @backward
graph @f {
	input %x: f32[32768,6]
	input %labels: i64[32768]
	param %w: f32[50257,6]
	%logits = matmul %x, %w {tb=1}
	%loss: f32[] output, %lse, %den = sce %logits, %labels
	loss %loss
}
