# A chain of element-wise ops is one loop; what backward reads is an output of it.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,8]
# 	const %c: f32[8] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}
# 	%a: f32[4,8], %y: f32[4,8] output = loop %x, %c [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = silu t0
# 		t2: f32 = add t1, a0
# 		give t0, t2
# 	]
# 	%dx: f32[4,8] output = loop %x, %a @backward [
# 		t0: f32 = neg a0
# 		t1: f32 = silu_grad a1, t0
# 		give t1
# 	]
# }
graph @f {
	input %x: f32[4,8]
	const %c: f32[8] = splat 0.5
	%a = mul %x, %c
	%b = silu %a
	%y output = add %b, %x
	%db = neg %x @backward
	%dx output = silu_grad %a, %db @backward
}
