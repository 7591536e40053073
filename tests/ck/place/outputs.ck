# An output keeps its bytes to the end of the step; scratch has its own beside
# what is alive.
# run: --passes=layout,plan,inplace,place --threads=1
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,16] bytes 256
# 	input %i: f32[1,2,8,8] bytes 512
# 	param %w: f32[16,16] bytes 1024
# 	param %k: f32[4,2,3,3] bytes 320
# 	%a: f32[4,16] output bytes 256 at 0 = matmul %x, %w
# 	%b: f32[4,16] bytes 256 at 512 = matmul %a, %w
# 	%c: f32[4,16] bytes 256 at 256 = matmul %b, %w
# 	%d: f32[4,16] output bytes 256 at 2880 = matmul %c, %w
# 	%y: f32[1,4,6,6] output bytes 576 at 3136 = conv %i, %k {stride=[1,1], dilation=[1,1], begin=[0,0], end=[0,0]} workspace 2624 at 256
# }
graph @f {
	props bound static canon loss fused
	input %x: f32[4,16]
	input %i: f32[1,2,8,8]
	param %w: f32[16,16]
	param %k: f32[4,2,3,3]
	%a: f32[4,16] output = matmul %x, %w
	%b: f32[4,16] = matmul %a, %w
	%c: f32[4,16] = matmul %b, %w
	%d: f32[4,16] output = matmul %c, %w
	%y: f32[1,4,6,6] output = conv %i, %k
}
