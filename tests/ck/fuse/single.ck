# A single element-wise node is a loop too, a copy is not.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4]
# 	%y: f32[4] output = loop %x [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%z: f32[4] output = copy %x
# }
graph @f {
	input %x: f32[4]
	%y output = exp %x
	%z output = copy %x
}
