# A view that backward takes of a recomputed value lies in the copy.
# run: --passes=layout,plan,inplace,place,account,replay --recompute-values=a --threads=1
# check: %a.again
# check: reshape %a.again
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[4,16]
	param %w: f32[16,16]
	%a: f32[4,16] = matmul %x, %w
	%y: f32[4,16] = matmul %a, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[4,16] = fill {shape=[4,16], value=1} @backward
	%z: f32[4,16] = matmul %dy, %w {tb=1} @backward
	%v: f32[16,4] = reshape %a {shape=[16,4]} @backward
	%d: f32[16,16] = matmul %v, %z @backward
	%dw: f32[16,16] output param %w = tanh %d @backward
	loss %loss
}
