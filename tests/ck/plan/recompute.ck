# Under a budget the wide value is computed again just before backward reads
# it, from what is kept.
# run: --passes=layout,plan --memory-budget 16000 --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[16,16]
	param %w: f32[16,16]
	%a = matmul %x, %w
	%b: f32[16,64] = concat %a, %a, %a, %a {axis=1}
	%loss output = reduce_sum %b {axes=[0,1], keepdims=0}
	%s: f32[16,16] = fill {shape=[16,16], value=1} @backward
	%wide: f32[48,48] = pad %s {begin=[0,0], end=[32,32]} @backward
	%da: f32[16,16] = slice %wide {start=[0,0], step=[1,1]} @backward
	%dw1: f32[16,16] = matmul %a, %da {ta=1} @backward
	%db: f32[16,64] = softmax %b {axis=1} @backward
	%dw2: f32[64,16] output = matmul %db, %dw1 {ta=1} @backward
	loss %loss
}
# expect:
# graph @f {
# 	props upd planned
# 	input %x: f32[16,16] bytes 1024
# 	param %w: f32[16,16] bytes 1024
# 	%a: f32[16,16] bytes 1024 = matmul %x, %w
# 	%b: f32[16,64] bytes 4096 = concat %a, %a, %a, %a {axis=1}
# 	%loss: f32[] output bytes 64 = reduce_sum %b {axes=[0,1], keepdims=0}
# 	%s: f32[16,16] bytes 1024 = fill {shape=[16,16], value=1} @backward
# 	%wide: f32[48,48] bytes 9216 = pad %s {begin=[0,0], end=[32,32]} @backward
# 	%da: f32[16,16] strides [48,1] in %wide = slice %wide {start=[0,0], step=[1,1]} @backward
# 	%dw1: f32[16,16] bytes 1024 = matmul %a, %da {ta=1} @backward
# 	%b.again: f32[16,64] of %b bytes 4096 = concat %a, %a, %a, %a {axis=1} @recompute again %b
# 	%db: f32[16,64] bytes 4096 = softmax %b.again {axis=1} @backward
# 	%dw2: f32[64,16] output bytes 4096 = matmul %db, %dw1 {ta=1} @backward
# 	loss %loss
# }
