# The copy of a value that is read through views brings its views along, and a
# view made in backward lies in the copy.
# run: --passes=layout,plan --recompute-values a --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,16]
	param %w: f32[16,16]
	%a = matmul %x, %w
	%v: f32[128] = reshape %a {shape=[128]}
	%loss output = reduce_sum %v {axes=[0], keepdims=0}
	%dv: f32[128] = softmax %v {axis=0} @backward
	%da: f32[8,16] = reshape %dv {shape=[8,16]} @backward
	%t: f32[16,8] = transpose %a {perm=[1,0]} @backward
	%dw output = matmul %t, %da @backward
	loss %loss
}
# expect:
# graph @f {
# 	props upd planned
# 	input %x: f32[8,16] bytes 512
# 	param %w: f32[16,16] bytes 1024
# 	%a: f32[8,16] bytes 512 = matmul %x, %w
# 	%v: f32[128] in %a = reshape %a {shape=[128]}
# 	%loss: f32[] output bytes 64 = reduce_sum %v {axes=[0], keepdims=0}
# 	%a.again: f32[8,16] of %a bytes 512 = matmul %x, %w @recompute again %a
# 	%v.again: f32[128] of %v in %a.again = reshape %a.again {shape=[128]} @recompute again %v
# 	%dv: f32[128] bytes 512 = softmax %v.again {axis=0} @backward
# 	%da: f32[8,16] in %dv = reshape %dv {shape=[8,16]} @backward
# 	%t: f32[16,8] strides [1,16] in %a.again = transpose %a.again {perm=[1,0]} @backward
# 	%dw: f32[16,16] output bytes 1024 = matmul %t, %da @backward
# 	loss %loss
# }
