# Outputs of a closed gradient that nobody wants are left out.
# run: --passes=autodiff
# check: %x adjoint %x = layernorm_grad
graph @f {
	input %s: f32[4]
	param %x: f32[2,4]
	%y, %mean, %rstd = layernorm %x, %s, %s
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
