# A parameter that is used twice has one gradient: the scatter adds to the
# product's in place.
# run: --passes=autodiff
graph @f {
	param %w: f32[4,3]
	input %ids: i64[2]
	%x = gather %w, %ids
	%h = tanh %x
	%y = matmul %h, %w {tb=1}
	%loss output = reduce_mean %y {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	param %w: f32[4,3]
# 	input %ids: i64[2]
# 	const %t8: f32[] = {0.125}
# 	const %t14: f32[] = {1}
# 	%x: f32[2,3] = gather %w, %ids
# 	%h: f32[2,3] = tanh %x
# 	%y: f32[2,4] = matmul %h, %w {tb=1}
# 	%loss: f32[] output = reduce_mean %y {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%t9: f32[] = mul %d.loss, %t8 @backward
# 	%d.y: f32[2,4] adjoint %y = expand %t9 {shape=[2,4]} @backward
# 	%t11: f32[4,3] = matmul %d.y, %h {ta=1} @backward
# 	%d.h: f32[2,3] adjoint %h = matmul %d.y, %w @backward
# 	%t13: f32[2,3] = mul %h, %h @backward
# 	%t15: f32[2,3] = sub %t14, %t13 @backward
# 	%d.x: f32[2,3] adjoint %x = mul %d.h, %t15 @backward
# 	%d.w: f32[4,3] param %w adjoint %w = scatter_add %ids, %d.x, %t11 {shape=[4,3]} @backward
# 	loss %loss
# }
