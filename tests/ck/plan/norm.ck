# A copy writes only what is read: the row of a norm comes back, its
# statistics stay.
# run: --passes=layout,plan --recompute-values y --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,64]
	param %w: f32[64,64]
	param %scale: f32[64]
	%y, %mean, %rstd = layernorm %x, %scale {axis=1}
	%z = matmul %y, %w
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	%dz: f32[8,64] = fill {shape=[8,64], value=1} @backward
	%dw output param %w = matmul %y, %dz {ta=1} @backward
	%dy = matmul %dz, %w {tb=1} @backward
	%dx, %dscale output, %dbias = layernorm_grad %dy, %x, %scale, %mean, %rstd {axis=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	props upd planned
# 	input %x: f32[8,64] bytes 2048
# 	param %w: f32[64,64] bytes 16384
# 	param %scale: f32[64] bytes 256
# 	%y: f32[8,64] bytes 2048, %mean: f32[8] bytes 64, %rstd: f32[8] bytes 64 = layernorm %x, %scale {axis=1}
# 	%z: f32[8,64] bytes 2048 = matmul %y, %w
# 	%loss: f32[] output bytes 64 = reduce_sum %z {axes=[0,1], keepdims=0}
# 	%dz: f32[8,64] bytes 2048 = fill {shape=[8,64], value=1} @backward
# 	%y.again: f32[8,64] of %y bytes 2048 = layernorm %x, %scale {axis=1} @recompute again %y
# 	%dw: f32[64,64] output param %w bytes 16384 = matmul %y.again, %dz {ta=1} @backward
# 	%dy: f32[8,64] bytes 2048 = matmul %dz, %w {tb=1} @backward
# 	%dx: f32[8,64] bytes 2048, %dscale: f32[64] output bytes 256, %dbias: f32[64] bytes 256 = layernorm_grad %dy, %x, %scale, %mean, %rstd {axis=1} @backward workspace 512
# 	loss %loss
# }
