# A loss that stands behind forward, as the chunked classifier's does, is made
# of what was not rounded: its operand stays as it is.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype bf16 --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f32[512,64]
	%a = matmul %x, %w
	%s: f32[64,64] = fill {shape=[64,64], value=1} @backward
	%wide: f32[256,256] = pad %s {begin=[0,0], end=[192,192]} @backward
	%da: f32[64,64] = slice %wide {start=[0,0], step=[1,1]} @backward
	%dl = loop %a, %da [t0 = mul a0, a1; give t0] @backward
	%loss output = reduce_sum %a {axes=[0,1], keepdims=0} @backward
	%dm = matmul %a, %dl @backward
	%dw output param %w = matmul %x, %dm {ta=1} @backward
	loss %loss
}
# check-not: half
# check: %a.again
