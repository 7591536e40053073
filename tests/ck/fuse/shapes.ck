# A value of another shape comes in from outside and is broadcast.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,8]
# 	input %b: f32[8]
# 	%s: f32[8] = loop %b [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%y: f32[4,8] output = loop %x, %s [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = add t0, a1
# 		give t1
# 	]
# }
graph @f {
	input %x: f32[4,8]
	input %b: f32[8]
	%s = exp %b
	%a = mul %x, %s
	%y output = add %a, %s
}
