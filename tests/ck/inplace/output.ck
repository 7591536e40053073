# An output of the step is never overwritten.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%a: f32[4,4] output = matmul %x, %x
	%b: f32[4,4] = neg %a
	%y: f32[4,4] output = matmul %b, %x
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%a: f32[4,4] output bytes 64 = matmul %x, %x
# 	%b: f32[4,4] bytes 64 = loop %a [
# 		t0: f32 = neg a0
# 		give t0
# 	]
# 	%y: f32[4,4] output bytes 64 = matmul %b, %x
# }
