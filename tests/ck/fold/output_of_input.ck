# An output that is an input becomes a copy; one that is constant stays.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2]
# 	const %t5: f32[2] = {1, 2}
# 	%y: f32[2] output = copy %x
# 	%z: f32[2] output = copy %t5
# }
graph @f {
	input %x: f32[2]
	const %c: f32[2] = {1,2}
	%y output = identity %x
	%z output = identity %c
}
