# A residual is the accumulator of the product before it.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[2,2,4]
# 	param %w: f32[4,4] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	param %b: f32[4] = {1, 1, 1, 1}
# 	%h: f32[2,2,4] = loop %x [
# 		t0: f32 = neg a0
# 		give t0
# 	]
# 	%flat: f32[4,4] = reshape %h {shape=[4,4]}
# 	%t9: f32[4,4] = reshape %h {shape=[4,4]}
# 	%m: f32[4,4] = matmul %flat, %w, %b, %t9
# 	%y: f32[2,2,4] output = reshape %m {shape=[2,2,4]}
# }
graph @f {
	input %x: f32[2,2,4]
	param %w: f32[4,4] = splat 1
	param %b: f32[4] = splat 1
	%h = neg %x
	%flat = reshape %h {shape=[4,4]}
	%m = matmul %flat, %w, %b
	%r = reshape %m {shape=[2,2,4]}
	%y output = add %r, %h
}
