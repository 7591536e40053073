# Types of results may be left out; they are inferred and printed.
# run: --passes=none
graph @f {
	input %x: f32[batch,4]
	param %w: f32[8,4]
	param %b: f32[8]
	const %s: f32[] = {0.5}
	%y = matmul %x, %w, %b {tb=1}
	%z output = mul %y, %s
}
# expect:
# graph @f {
# 	input %x: f32[batch,4]
# 	param %w: f32[8,4]
# 	param %b: f32[8]
# 	const %s: f32[] = {0.5}
# 	%y: f32[?,8] = matmul %x, %w, %b {tb=1}
# 	%z: f32[?,8] output = mul %y, %s
# }
