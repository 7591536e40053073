# Forward and backward nodes do not share a loop.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4]
# 	%a: f32[4], %y: f32[4] output = loop %x [
# 		t0: f32 = exp a0
# 		t1: f32 = neg t0
# 		give t0, t1
# 	]
# 	%dx: f32[4] output = loop %a, %y @backward [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# }
graph @f {
	input %x: f32[4]
	%a = exp %x
	%y output = neg %a
	%dx output = mul %a, %y @backward
}
