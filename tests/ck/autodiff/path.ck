# Only what lies between a trained parameter and the loss gets an adjoint:
# nothing for the input, the frozen weight, the mask and the branch that the
# loss does not read.
# run: --passes=autodiff
# stderr: parameter 'unused' is not trained: the loss does not depend on it
graph @f {
	input %x: f32[2,4]
	param %frozen: f32[4,4] frozen = splat 0
	param %w: f32[4,4]
	param %unused: f32[4]
	%h = matmul %x, %frozen
	%r = relu %h
	%y = matmul %r, %w
	%zero = sub %x, %x
	%c = gt %y, %zero
	%m = where %c, %y, %zero
	%side output = mul %y, %unused
	%loss output = reduce_sum %m {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %frozen: f32[4,4] frozen = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
# 	param %w: f32[4,4]
# 	param %unused: f32[4] frozen
# 	const %t15: f32[] = {0}
# 	%h: f32[2,4] = matmul %x, %frozen
# 	%r: f32[2,4] = relu %h
# 	%y: f32[2,4] = matmul %r, %w
# 	%zero: f32[2,4] = sub %x, %x
# 	%c: bool[2,4] = gt %y, %zero
# 	%m: f32[2,4] = where %c, %y, %zero
# 	%side: f32[2,4] output = mul %y, %unused
# 	%loss: f32[] output = reduce_sum %m {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.m: f32[2,4] adjoint %m = expand %d.loss {shape=[2,4]} @backward
# 	%d.y: f32[2,4] adjoint %y = where %c, %d.m, %t15 @backward
# 	%d.w: f32[4,4] param %w adjoint %w = matmul %r, %d.y {ta=1} @backward
# 	loss %loss
# }
