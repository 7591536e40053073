# A reader of a parameter does not sink behind the update that overwrites it.
# run: --passes=fuse
# expect:
# graph @f {
# 	param %w: f32[4,4]
# 	input %x: f32[4,4]
# 	input %g: f32[4,4]
# 	%a: f32[4,4] = loop %g, %w @backward [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# 	%dw: f32[4,4] param %w = softmax %x @backward
# 	%new: f32[4,4] = sgd %w, %dw @update
# 	%h: f32[4,4] output = softmax %x @backward
# 	%i: f32[4,4] = softmax %h @backward
# 	%y: f32[4,4] output = loop %a, %i @backward [
# 		t0: f32 = add a0, a1
# 		give t0
# 	]
# }
graph @f {
	param %w: f32[4,4]
	input %x: f32[4,4]
	input %g: f32[4,4]
	%a = mul %g, %w @backward
	%dw param %w = softmax %x @backward
	%new = sgd %w, %dw @update
	%h output = softmax %x @backward
	%i = softmax %h @backward
	%y output = add %a, %i @backward
}
