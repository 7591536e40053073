# A sum does not sink past heavy nodes: both its operands would live on.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	%a: f32[4,4] = softmax %x
# 	%b: f32[4,4] = softmax %x {axis=0}
# 	%s: f32[4,4] = loop %a, %b [
# 		t0: f32 = add a0, a1
# 		give t0
# 	]
# 	%h: f32[4,4] = softmax %x
# 	%i: f32[4,4] = softmax %h
# 	%y: f32[4,4] output = loop %s, %i [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# }
graph @f {
	input %x: f32[4,4]
	%a = softmax %x
	%b = softmax %x {axis=0}
	%s = add %a, %b
	%h = softmax %x
	%i = softmax %h
	%y output = mul %s, %i
}
