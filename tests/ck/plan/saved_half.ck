# A budget that keeps half of what backward reads: the value is rounded behind
# its last reader in forward, a loop widens it as it reads, a product gets a
# wide one made right before it.  The loss is of what was not rounded.
# run: --passes=layout,plan --memory-budget 550000 --save-dtype bf16 --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[64,512]
	param %w: f32[512,64]
	%a = matmul %x, %w
	%loss output = reduce_sum %a {axes=[0,1], keepdims=0}
	%s: f32[64,64] = fill {shape=[64,64], value=1} @backward
	%wide: f32[256,256] = pad %s {begin=[0,0], end=[192,192]} @backward
	%da: f32[64,64] = slice %wide {start=[0,0], step=[1,1]} @backward
	%dl = loop %a, %da [t0 = mul a0, a1; give t0] @backward
	%dm = matmul %a, %dl @backward
	%dw output param %w = matmul %x, %dm {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	props upd planned
# 	input %x: f32[64,512] bytes 131072
# 	param %w: f32[512,64] bytes 131072
# 	%a: f32[64,64] bytes 16384 = matmul %x, %w
# 	%loss: f32[] output bytes 64 = reduce_sum %a {axes=[0,1], keepdims=0}
# 	%a.bf16: bf16[64,64] low_precision %a bytes 8192 = loop %a [
# 		t0: bf16 = cast a0 {to=bf16}
# 		give t0
# 	]
# 	%s: f32[64,64] bytes 16384 = fill {shape=[64,64], value=1} @backward
# 	%wide: f32[256,256] bytes 262144 = pad %s {begin=[0,0], end=[192,192]} @backward
# 	%da: f32[64,64] strides [256,1] in %wide = slice %wide {start=[0,0], step=[1,1]} @backward
# 	%dl: f32[64,64] bytes 16384 = loop %a.bf16, %da @backward [
# 		t0: f32 = cast a0 {to=f32}
# 		t1: f32 = mul t0, a1
# 		give t1
# 	]
# 	%a.wide: f32[64,64] of %a bytes 16384 = loop %a.bf16 @recompute again %a.bf16 [
# 		t0: f32 = cast a0 {to=f32}
# 		give t0
# 	]
# 	%dm: f32[64,64] bytes 16384 = matmul %a.wide, %dl @backward
# 	%dw: f32[512,64] output param %w bytes 131072 = matmul %x, %dm {ta=1} @backward
# 	loss %loss
# }
