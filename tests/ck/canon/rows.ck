# The shift of a language model's loss: only rows that are needed are computed.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4]
	param %w: f32[4,8]
	%r = reshape %x {shape=[6,4]}
	%p = matmul %r, %w
	%q = reshape %p {shape=[2,3,8]}
	%s: f32[2,2,8] = slice %q {start=[0,0,0], step=[1,1,1]}
	%y output = reshape %s {shape=[4,8]}
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	param %w: f32[4,8]
# 	%s.slice: f32[2,2,4] = slice %x {start=[0,0,0], step=[1,1,1]}
# 	%s.reshape.2: f32[4,4] = reshape %s.slice {shape=[4,4]}
# 	%y: f32[4,8] output = matmul %s.reshape.2, %w
# }
