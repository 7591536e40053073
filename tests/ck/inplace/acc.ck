# A product adds to its accumulator in place, unless it also reads it.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%p: f32[4,4] = exp %x
	%q: f32[4,4] = matmul %x, %x, _, %p
	%r: f32[4,4] = matmul %q, %x, _, %q
	%y: f32[4,4] output = reduce_sum %r {axes=[], noop=1}
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%p: f32[4,4] bytes 64 = loop %x [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%q: f32[4,4] in %p = matmul %x, %x, _, %p
# 	%r: f32[4,4] bytes 64 = matmul %q, %x, _, %q
# 	%y: f32[4,4] output bytes 64 = reduce_sum %r {noop=1}
# }
