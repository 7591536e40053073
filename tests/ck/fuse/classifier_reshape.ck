# Reshapes between product and loss do not matter; a weight kept as [K,V] neither.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[2,2,6]
# 	input %labels: i64[4]
# 	param %w: f32[6,8]
# 	%rows: f32[4,6] = reshape %x {shape=[4,6]}
# 	%loss: f32[] output, %dx: f32[4,6] output, %dw: f32[6,8] param %w = classifier %rows, %w, %labels {tb=0, chunk=4} @backward
# 	loss %loss
# }
graph @f {
	input %x: f32[2,2,6]
	input %labels: i64[4]
	param %w: f32[6,8]
	%rows = reshape %x {shape=[4,6]}
	%m = matmul %rows, %w
	%out = reshape %m {shape=[2,2,8]}
	%logits = reshape %out {shape=[4,8]}
	%loss: f32[] output, %lse, %den = sce %logits, %labels
	%seed = fill {value=1} @backward
	%dl = sce_grad %seed, %logits, %labels, %lse, %den @backward
	%dout = reshape %dl {shape=[2,2,8]} @backward
	%dm = reshape %dout {shape=[4,8]} @backward
	%dx output = matmul %dm, %w {tb=1} @backward
	%dw: f32[6,8] param %w = matmul %rows, %dm {ta=1} @backward
	loss %loss
}
