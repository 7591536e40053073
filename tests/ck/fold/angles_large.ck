# Angles of positions, too large to be computed, are no product: in 16 bits they
# would be no angles.
# run: --passes=fold --fold-limit=100
graph @f {
	input %x: f32[1,4,16]
	const %frequency: f32[1,4,1] = {1, 0.1, 0.01, 0.001}
	const %position: f32[1,1,16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	%angle = matmul %frequency, %position
	%cos = cos %angle
	%y output = mul %x, %cos
}
# expect:
# graph @f {
# 	input %x: f32[1,4,16]
# 	const %frequency: f32[1,4,1] = {1, 0.1, 0.01, 0.001}
# 	const %position: f32[1,1,16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# 	%angle: f32[1,4,16] = mul %frequency, %position
# 	%cos: f32[1,4,16] = cos %angle
# 	%y: f32[1,4,16] output = mul %x, %cos
# }
