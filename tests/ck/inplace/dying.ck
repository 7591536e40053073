# A loop writes over its operand where that dies, and only there.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%a: f32[4,4] = matmul %x, %x
	%b: f32[4,4] = add %a, %x
	%c: f32[4,4] = matmul %a, %b
	%d: f32[4,4] = mul %c, %b
	%y: f32[4,4] output = matmul %d, %x
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%a: f32[4,4] bytes 64 = matmul %x, %x
# 	%b: f32[4,4] bytes 64 = loop %a, %x [
# 		t0: f32 = add a0, a1
# 		give t0
# 	]
# 	%c: f32[4,4] bytes 64 = matmul %a, %b
# 	%d: f32[4,4] in %c = loop %c, %b [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# 	%y: f32[4,4] output bytes 64 = matmul %d, %x
# }
