# Logarithms of a sigmoid and of what it leaves of 1 become softplus, which
# stays finite; 2 - sigmoid does not.
# run: --passes=canon
graph @f {
	input %x: f32[6]
	const %one: f32[] = {1}
	const %two: f32[] = {2}
	%s = sigmoid %x
	%r = sub %one, %s
	%a output = log %s
	%b output = log %r
	%q = sub %two, %s
	%c output = log %q
}
# expect:
# graph @f {
# 	input %x: f32[6]
# 	const %two: f32[] = {2}
# 	%s: f32[6] = sigmoid %x
# 	%a.neg: f32[6] = neg %x
# 	%a.softplus: f32[6] = softplus %a.neg
# 	%a: f32[6] output = neg %a.softplus
# 	%b.softplus: f32[6] = softplus %x
# 	%b: f32[6] output = neg %b.softplus
# 	%q: f32[6] = sub %two, %s
# 	%c: f32[6] output = log %q
# }
