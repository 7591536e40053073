# Gradients of norms take along what flows past them; that of a scale which two
# norms share is added up apart.
# run: --passes=autodiff
# check: %d.n: f32[2,4] adjoint %n, %t21: f32[4] = rmsnorm_grad %d.m, %n, %s, %rms, %d.y @backward
# check: = layernorm_grad %d.n, %h, %s, %mean, %rstd, %d.y @backward
# check: %d.s: f32[4] param %s adjoint %s = add
graph @f {
	param %x: f32[2,4]
	param %s: f32[4]
	param %b: f32[4]
	%h = tanh %x
	%n, %mean, %rstd = layernorm %h, %s, %b
	%m, %rms = rmsnorm %n, %s
	%z = sigmoid %m
	%o = add %z, %n
	%y = add %o, %h
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
