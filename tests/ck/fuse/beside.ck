# Neighbours that read the same values share a loop.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	input %z: f32[4,4]
# 	%a: f32[4,4] output, %b: f32[4,4] output = loop %x, %z [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = sub a0, a1
# 		give t0, t1
# 	]
# }
graph @f {
	input %x: f32[4,4]
	input %z: f32[4,4]
	%a output = mul %x, %z
	%b output = sub %x, %z
}
