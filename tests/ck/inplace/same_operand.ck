# The same operand twice in one layout may be overwritten.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%a: f32[4,4] = matmul %x, %x
	%b: f32[4,4] = mul %a, %a
	%y: f32[4,4] output = reduce_sum %b {axes=[], noop=1}
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%a: f32[4,4] bytes 64 = matmul %x, %x
# 	%b: f32[4,4] in %a = loop %a [
# 		t0: f32 = mul a0, a0
# 		give t0
# 	]
# 	%y: f32[4,4] output bytes 64 = reduce_sum %b {noop=1}
# }
