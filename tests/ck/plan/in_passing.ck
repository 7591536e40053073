# A copy of a norm for its statistics alone writes its rows in passing: readers
# go on with the rows that were kept.
# run: --passes=layout,plan,inplace,place,account,replay --recompute-values mean --recompute-values rstd --keep y --optimizer none
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
	_, %dscale output, %dbias = layernorm_grad %dy, %x, %scale, %mean, %rstd {axis=1} @backward
	loss %loss
}
# check: matmul %y, %dz {ta=1}
# check: %y.again: f32[8,64] of %y bytes 2048
# check: layernorm_grad %dy, %x, %scale, %mean.again, %rstd.again
