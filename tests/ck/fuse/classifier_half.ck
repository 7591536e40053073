# On a GPU logits are held in the type of both operands: as many bytes are twice
# as many rows of 16 bits.
# run: --target=cuda --dtype=bf16 --passes=precision,autodiff,optim,fuse
# check: = classifier %t8, %copy.w, %labels {chunk=2048} @backward
graph @f {
	input %x: f32[4096,6]
	input %labels: i64[4096]
	param %w: f32[65536,6]
	%logits = matmul %x, %w {tb=1}
	%loss: f32[] output, %lse, %den = sce %logits, %labels
	loss %loss
}
