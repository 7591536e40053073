# GELU with tanh: the half on x, a power of three.
# run: --passes=canon
graph @f {
	input %x: f32[2,4]
	const %three: f32[] = {3}
	const %k: f32[] = {0.044715}
	const %c: f32[] = {0.797884583}
	const %one: f32[] = {1}
	const %half: f32[] = {0.5}
	%h = mul %x, %half
	%x3 = pow %x, %three
	%kx = mul %x3, %k
	%a = add %x, %kx
	%u = mul %a, %c
	%t = tanh %u
	%t1 = add %t, %one
	%y output = mul %h, %t1
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	%y: f32[2,4] output = gelu %x {tanh=1}
# }
