# Backward computes y again from a rounded a, and reads its value, which is off
# by little.  Where it decides by y: saved_half_decides.ck.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype bf16 --recompute-values y --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f32[512,64]
	%a = matmul %x, %w
	%b = matmul %a, %a
	%y = softmax %b {axis=1}
	const %zero: f32[] = {0}
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%s: f32[64,64] = fill {shape=[64,64], value=1} @backward
	%wide: f32[256,256] = pad %s {begin=[0,0], end=[192,192]} @backward
	%da: f32[64,64] = slice %wide {start=[0,0], step=[1,1]} @backward
	%ds = loop %da [t0 = neg a0; give t0] @backward
	%dl = loop %y, %ds, %zero [t0 = mul a0, a1; t1 = add t0, a2; give t1] @backward
	%dm = matmul %a, %dl @backward
	%dw output param %w = matmul %x, %dm {ta=1} @backward
	loss %loss
}
# check: %a.bf16: bf16[64,64] low_precision %a bytes 8192 = loop %a [
# check: %b.again: f32[64,64] of %b bytes 16384 = matmul %a.wide, %a.wide @recompute again %b
