# A node rises to its producer if the value between vanishes.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	input %g: f32[4,4]
# 	%du: f32[4,4], %dg: f32[4,4] output = loop %g, %x [
# 		t0: f32 = silu a0
# 		t1: f32 = mul a1, t0
# 		t2: f32 = mul a1, a0
# 		t3: f32 = silu_grad a0, t2
# 		give t1, t3
# 	]
# 	%h: f32[4,4] = softmax %du
# 	%i: f32[4,4] = softmax %h
# 	%j: f32[4,4] output = softmax %i
# }
graph @f {
	input %x: f32[4,4]
	input %g: f32[4,4]
	%s = silu %g
	%du = mul %x, %s
	%ds = mul %x, %g
	%h = softmax %du
	%i = softmax %h
	%j output = softmax %i
	%dg output = silu_grad %g, %ds
}
