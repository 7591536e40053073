# Dropout and its replay keep their stream within a loop.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	%y: f32[4,4] output = loop %x [
# 		t0: f32 = exp a0
# 		t1: f32 = dropout t0 {stream=3}
# 		t2: f32 = add t1, a0
# 		give t2
# 	]
# }
graph @f {
	input %x: f32[4,4]
	%a = exp %x
	%d = dropout %a {ratio=0.5, stream=3}
	%y output = add %d, %x
}
