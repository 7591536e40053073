# Readers of views get views of the half, or of the wide: no bytes are moved.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype f16 --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f32[512,64]
	%a = matmul %x, %w
	%v: f32[4096] = reshape %a {shape=[4096]}
	%t: f32[64,64] = transpose %a {perm=[1,0]}
	%loss output = reduce_sum %v {axes=[0], keepdims=0}
	%s: f32[64,64] = fill {shape=[64,64], value=1} @backward
	%wide: f32[256,256] = pad %s {begin=[0,0], end=[192,192]} @backward
	%da: f32[64,64] = slice %wide {start=[0,0], step=[1,1]} @backward
	%vs: f32[4096] = reshape %da {shape=[4096]} @backward
	%dv = loop %v, %vs [t0 = mul a0, a1; give t0] @backward
	%dl: f32[64,64] = reshape %dv {shape=[64,64]} @backward
	%dm = matmul %t, %dl @backward
	%dw output param %w = matmul %x, %dm {ta=1} @backward
	loss %loss
}
# check: %a.f16: f16[64,64] low_precision %a bytes 8192 = loop %a [
# check: %v.f16: f16[4096] low_precision %v in %a.f16 = reshape %a.f16
# check: = loop %v.f16, %vs @backward [
# check: t0: f32 = cast a0
# check: %a.wide: f32[64,64] of %a bytes 16384 = loop %a.f16 @recompute
# check: %t.wide: f32[64,64] of %t strides [1,64] in %a.wide
# check: %dm: f32[64,64] bytes 16384 = matmul %t.wide, %dl
