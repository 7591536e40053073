# Vectors are rows on the left of a product and columns on the right.
# run: --passes=fold
# expect:
# graph @f {
# 	props canon
# 	input %v: f32[3]
# 	input %m: f32[2,3,4]
# 	input %w: f32[4]
# 	%t7: f32[1,3] = reshape %v {shape=[1,3]}
# 	%t8: f32[2,1,4] = matmul %t7, %m
# 	%a: f32[2,4] output = reshape %t8 {shape=[2,4]}
# 	%t9: f32[4,1] = reshape %w {shape=[4,1]}
# 	%t10: f32[2,3,1] = matmul %m, %t9
# 	%b: f32[2,3] output = reshape %t10 {shape=[2,3]}
# 	%t11: f32[1,3] = reshape %v {shape=[1,3]}
# 	%t12: f32[3,1] = reshape %v {shape=[3,1]}
# 	%t13: f32[1,1] = matmul %t11, %t12
# 	%c: f32[] output = reshape %t13
# }
graph @f {
	input %v: f32[3]
	input %m: f32[2,3,4]
	input %w: f32[4]
	%a output = matmul %v, %m
	%b output = matmul %m, %w
	%c output = matmul %v, %v
}
