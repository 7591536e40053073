# The later of two products adds to the earlier.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	input %z: f32[4,4]
# 	%a: f32[4,4] = matmul %x, %z
# 	%s: f32[4,4] = matmul %z, %x, _, %a
# 	%y: f32[4,4] output = matmul %x, %x, _, %s
# }
graph @f {
	input %x: f32[4,4]
	input %z: f32[4,4]
	%a = matmul %x, %z
	%b = matmul %z, %x
	%s = add %b, %a
	%c = matmul %x, %x
	%y output = add %c, %s
}
