# Work on a repeated value is done before it is repeated.
# run: --passes=canon
graph @f {
	input %m: f32[2,1,1,3]
	input %s: f32[2,4,3,3]
	const %one: f32[] = {1}
	%e = expand %m {shape=[2,1,3,3]}
	%a = sub %one, %e
	%b = tanh %a
	%y output = add %s, %b
}
# expect:
# graph @f {
# 	input %m: f32[2,1,1,3]
# 	input %s: f32[2,4,3,3]
# 	const %one: f32[] = {1}
# 	%a.sub: f32[2,1,1,3] = sub %one, %m
# 	%b.tanh: f32[2,1,1,3] = tanh %a.sub
# 	%y: f32[2,4,3,3] output = add %s, %b.tanh
# }
