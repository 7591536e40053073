# Eight products of few rows by one transposed side read a copy of it; one of
# many rows, or seven products, read it as it lies.
# run: --passes=fuse,layout
# expect:
# graph @f {
# 	input %x: f32[4,8] bytes 128
# 	input %z: f32[65,8] bytes 2112
# 	param %w: f32[8,8] bytes 256
# 	param %v: f32[8,8] bytes 256
# 	%t15: f32[8,8] strides [1,8] in %w = transpose %w {perm=[1,0]}
# 	%t16: f32[8,8] bytes 256 = copy %t15
# 	%y0: f32[4,8] bytes 128 = matmul %x, %t16
# 	%y1: f32[4,8] bytes 128 = matmul %y0, %t16
# 	%y2: f32[4,8] bytes 128 = matmul %y1, %t16
# 	%y3: f32[4,8] bytes 128 = matmul %y2, %t16
# 	%y4: f32[4,8] bytes 128 = matmul %y3, %t16
# 	%y5: f32[4,8] bytes 128 = matmul %y4, %t16
# 	%y6: f32[4,8] bytes 128 = matmul %y5, %t16
# 	%y7: f32[4,8] output bytes 128 = matmul %y6, %t16
# 	%b: f32[65,8] output bytes 2112 = matmul %z, %w {tb=1}
# 	%c: f32[4,8] output bytes 128 = matmul %x, %v {tb=1}
# }
graph @f {
	input %x: f32[4,8]
	input %z: f32[65,8]
	param %w: f32[8,8]
	param %v: f32[8,8]
	%y0 = matmul %x, %w {tb=1}
	%y1 = matmul %y0, %w {tb=1}
	%y2 = matmul %y1, %w {tb=1}
	%y3 = matmul %y2, %w {tb=1}
	%y4 = matmul %y3, %w {tb=1}
	%y5 = matmul %y4, %w {tb=1}
	%y6 = matmul %y5, %w {tb=1}
	%y7 output = matmul %y6, %w {tb=1}
	%b output = matmul %z, %w {tb=1}
	%c output = matmul %x, %v {tb=1}
}
