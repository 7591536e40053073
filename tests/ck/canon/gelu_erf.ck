# GELU with erf: x / sqrt 2, the half at the end.
# run: --passes=canon
graph @f {
	input %x: f32[2,4]
	const %s2: f32[] = {1.41421354}
	const %one: f32[] = {1}
	const %half: f32[] = {0.5}
	%a = div %x, %s2
	%e = erf %a
	%e1 = add %e, %one
	%xe = mul %x, %e1
	%y output = mul %xe, %half
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	%y: f32[2,4] output = gelu %x
# }
