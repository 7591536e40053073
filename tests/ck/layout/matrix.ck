# A product takes transposed and strided matrices, but no broadcast rows.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[3,8] bytes 128
# 	input %v: f32[1,4] bytes 64
# 	param %w: f32[4,4] bytes 64 = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	%s: f32[3,4] strides [8,1] start 2 in %x = slice %x {start=[0,2], step=[1,1]}
# 	%a: f32[3,4] output bytes 64 = matmul %s, %w
# 	%t: f32[4,3] strides [1,8] start 2 in %x = transpose %s {perm=[1,0]}
# 	%b: f32[4,4] output bytes 64 = matmul %t, %s
# 	%e: f32[3,4] bytes 64 = expand %v {shape=[3,4]}
# 	%c: f32[3,4] output bytes 64 = matmul %e, %w
# 	%d2: f32[3,4] bytes 64 = slice %x {start=[0,0], step=[1,2]}
# 	%d: f32[3,4] output bytes 64 = matmul %d2, %w
# }
graph @f {
	input %x: f32[3,8]
	input %v: f32[1,4]
	param %w: f32[4,4] = splat 1
	%s: f32[3,4] = slice %x {start=[0,2], step=[1,1]}
	%a output = matmul %s, %w
	%t = transpose %s {perm=[1,0]}
	%b output = matmul %t, %s
	%e = expand %v {shape=[3,4]}
	%c output = matmul %e, %w
	%d2: f32[3,4] = slice %x {start=[0,0], step=[1,2]}
	%d output = matmul %d2, %w
}
