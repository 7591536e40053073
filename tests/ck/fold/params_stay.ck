# Parameters and buffers change, so nothing made of them is folded.
# run: --passes=fold
# expect:
# graph @f {
# 	param %w: f32[2] = {1, 2}
# 	buffer %b: f32[2] = {1, 2}
# 	const %c: f32[2] = {1, 2}
# 	const %t7: f32[2] = {1, 4}
# 	%x: f32[2] output = add %w, %c
# 	%y: f32[2] output = mul %b, %c
# 	%z: f32[2] output = copy %t7
# }
graph @f {
	param %w: f32[2] = {1,2}
	buffer %b: f32[2] = {1,2}
	const %c: f32[2] = {1,2}
	%x output = add %w, %c
	%y output = mul %b, %c
	%z output = mul %c, %c
}
