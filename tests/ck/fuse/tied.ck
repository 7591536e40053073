# The gradient of a tied weight goes on top of the other one.
# run: --passes=fuse
# expect:
# graph @f {
# 	param %w: f32[6,4] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
# 	input %ids: i64[3]
# 	input %d: f32[3,6]
# 	input %h: f32[3,4]
# 	%dw1: f32[6,4] = matmul %d, %h {ta=1} @backward
# 	%dw: f32[6,4] output param %w = scatter_add %ids, %h, %dw1 {shape=[6,4]} @backward
# }
graph @f {
	param %w: f32[6,4] = splat 1
	input %ids: i64[3]
	input %d: f32[3,6]
	input %h: f32[3,4]
	%dw1 = matmul %d, %h {ta=1} @backward
	%dw2 = scatter_add %ids, %h {shape=[6,4]} @backward
	%dw output param %w = add %dw2, %dw1 @backward
}
