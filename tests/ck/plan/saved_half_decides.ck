# On which side of zero was y?  With y computed again from a rounded a some of
# it would change sides, so that a is computed again as well.  The same with
# y read for its value: saved_half_slopes.ck.
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
	%dl = loop %y, %ds, %zero [t0 = gt a0, a2; t1 = where t0, a1, a2; give t1] @backward
	%dm = matmul %a, %dl @backward
	%dw output param %w = matmul %x, %dm {ta=1} @backward
	loss %loss
}
# check-not: half
# check: %b.again: f32[64,64] of %b bytes 16384 = matmul %a.again, %a.again
