# A loop around a product would wait for itself.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	param %w: f32[4,4] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	%a: f32[4,4] = loop %x [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%h: f32[4,4] = softmax %a
# 	%y: f32[4,4] output = loop %a, %h [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = add t0, a0
# 		give t1
# 	]
# }
graph @f {
	input %x: f32[4,4]
	param %w: f32[4,4] = splat 1
	%a = exp %x
	%h = softmax %a
	%b = mul %a, %h
	%y output = add %b, %a
}
