# Where a `where` did not take a branch, its adjoint stays zero through steep
# functions and what they made: log, and the product with 1 / y.  Nothing is
# added where slopes are finite (tanh, a division by a number), in front of a
# product, and where there is no `where`.
# run: --passes=autodiff
graph @f {
	input %m: bool[4,4]
	param %w: f32[4,4]
	param %v: f32[4,4]
	const %two: f32[] = {2}
	const %zero: f32[] = {0}
	%p = matmul %w, %v
	%q = log %p
	%r = matmul %q, %v
	%t = tanh %r
	%h = div %t, %two
	%l = log %h
	%y = where %m, %l, %zero
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %m: bool[4,4]
# 	param %w: f32[4,4]
# 	param %v: f32[4,4]
# 	const %two: f32[] = {2}
# 	const %zero: f32[] = {0}
# 	const %t16: f32[] = {0}
# 	const %t22: f32[] = {1}
# 	%p: f32[4,4] = matmul %w, %v
# 	%q: f32[4,4] = log %p
# 	%r: f32[4,4] = matmul %q, %v
# 	%t: f32[4,4] = tanh %r
# 	%h: f32[4,4] = div %t, %two
# 	%l: f32[4,4] = log %h
# 	%y: f32[4,4] = where %m, %l, %zero
# 	%loss: f32[] output = reduce_sum %y {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.y: f32[4,4] adjoint %y = expand %d.loss {shape=[4,4]} @backward
# 	%d.l: f32[4,4] adjoint %l = where %m, %d.y, %t16 @backward
# 	%t18: f32[4,4] = div %d.l, %h @backward
# 	%d.h: f32[4,4] adjoint %h = shield %d.l, %t18 @backward
# 	%d.t: f32[4,4] adjoint %t = div %d.h, %two @backward
# 	%t21: f32[4,4] = mul %t, %t @backward
# 	%t23: f32[4,4] = sub %t22, %t21 @backward
# 	%d.r: f32[4,4] adjoint %r = mul %d.t, %t23 @backward
# 	%t25: f32[4,4] = matmul %q, %d.r {ta=1} @backward
# 	%d.q: f32[4,4] adjoint %q = matmul %d.r, %v {tb=1} @backward
# 	%d.p: f32[4,4] adjoint %p = div %d.q, %p @backward
# 	%d.w: f32[4,4] param %w adjoint %w = matmul %d.p, %v {tb=1} @backward
# 	%d.v: f32[4,4] param %v adjoint %v = matmul %w, %d.p, _, %t25 {ta=1} @backward
# 	loss %loss
# }
