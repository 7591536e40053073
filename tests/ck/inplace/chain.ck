# Sharing goes on through several nodes, views of the middle included.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%a: f32[4,4] = exp %x
	%b: f32[4,4] = neg %a
	%v: f32[16] = reshape %b {shape=[16]}
	%c: f32[16] = sqrt %v
	%y: f32[16] output = reduce_sum %c {axes=[], noop=1}
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%b: f32[4,4] bytes 64 = loop %x [
# 		t0: f32 = exp a0
# 		t1: f32 = neg t0
# 		give t1
# 	]
# 	%v: f32[16] in %b = reshape %b {shape=[16]}
# 	%c: f32[16] in %b = loop %v [
# 		t0: f32 = sqrt a0
# 		give t0
# 	]
# 	%y: f32[16] output bytes 64 = reduce_sum %c {noop=1}
# }
