# Three products of one input: each adds to the adjoint so far; the gradient
# of a weight comes before the adjoint that goes on.
# run: --passes=autodiff
graph @f {
	input %x: f32[2,4]
	param %u: f32[4,4]
	param %wq: f32[4,4]
	param %wk: f32[4,4]
	param %wv: f32[4,4]
	%h = matmul %x, %u
	%q = matmul %h, %wq
	%k = matmul %h, %wk
	%v = matmul %h, %wv
	%a = mul %q, %k
	%b = mul %a, %v
	%loss output = reduce_sum %b {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	param %u: f32[4,4]
# 	param %wq: f32[4,4]
# 	param %wk: f32[4,4]
# 	param %wv: f32[4,4]
# 	%h: f32[2,4] = matmul %x, %u
# 	%q: f32[2,4] = matmul %h, %wq
# 	%k: f32[2,4] = matmul %h, %wk
# 	%v: f32[2,4] = matmul %h, %wv
# 	%a: f32[2,4] = mul %q, %k
# 	%b: f32[2,4] = mul %a, %v
# 	%loss: f32[] output = reduce_sum %b {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.b: f32[2,4] adjoint %b = expand %d.loss {shape=[2,4]} @backward
# 	%d.a: f32[2,4] adjoint %a = mul %d.b, %v @backward
# 	%d.v: f32[2,4] adjoint %v = mul %d.b, %a @backward
# 	%d.q: f32[2,4] adjoint %q = mul %d.a, %k @backward
# 	%d.k: f32[2,4] adjoint %k = mul %d.a, %q @backward
# 	%d.wv: f32[4,4] param %wv adjoint %wv = matmul %h, %d.v {ta=1} @backward
# 	%t20: f32[2,4] = matmul %d.v, %wv {tb=1} @backward
# 	%d.wk: f32[4,4] param %wk adjoint %wk = matmul %h, %d.k {ta=1} @backward
# 	%t22: f32[2,4] = matmul %d.k, %wk, _, %t20 {tb=1} @backward
# 	%d.wq: f32[4,4] param %wq adjoint %wq = matmul %h, %d.q {ta=1} @backward
# 	%d.h: f32[2,4] adjoint %h = matmul %d.q, %wq, _, %t22 {tb=1} @backward
# 	%d.u: f32[4,4] param %u adjoint %u = matmul %x, %d.h {ta=1} @backward
# 	loss %loss
# }
