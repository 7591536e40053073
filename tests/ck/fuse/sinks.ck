# A node sinks to its only reader past heavy ones if it keeps no more alive.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,4]
# 	param %w: f32[4,4] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	%g: f32[4,4] = matmul %x, %w
# 	%u: f32[4,4] = matmul %x, %w
# 	%y: f32[4,4] output = loop %g, %u [
# 		t0: f32 = silu a0
# 		t1: f32 = mul t0, a1
# 		give t1
# 	]
# }
graph @f {
	input %x: f32[4,4]
	param %w: f32[4,4] = splat 1
	%g = matmul %x, %w
	%s = silu %g
	%u = matmul %x, %w
	%y output = mul %s, %u
}
