# Values that are not alive together share bytes; resident ones have none in
# the arena.
# run: --passes=layout,plan,inplace,place
graph @f {
	props bound static canon loss fused
	input %x: f32[4,16]
	param %w: f32[16,16]
	%a: f32[4,16] = matmul %x, %w
	%b: f32[4,16] = matmul %a, %w
	%c: f32[4,16] = matmul %b, %w
	%d: f32[4,16] output = matmul %c, %w
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,16] bytes 256
# 	param %w: f32[16,16] bytes 1024
# 	%a: f32[4,16] bytes 256 at 256 = matmul %x, %w
# 	%b: f32[4,16] bytes 256 at 0 = matmul %a, %w
# 	%c: f32[4,16] bytes 256 at 256 = matmul %b, %w
# 	%d: f32[4,16] output bytes 256 at 0 = matmul %c, %w
# }
