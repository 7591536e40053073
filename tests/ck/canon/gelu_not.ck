# With another constant it is no GELU.
# run: --passes=canon
# check: erf
# check-not: gelu
graph @f {
	input %x: f32[2,4]
	const %s2: f32[] = {1.5}
	const %one: f32[] = {1}
	const %half: f32[] = {0.5}
	%a = div %x, %s2
	%e = erf %a
	%e1 = add %e, %one
	%xe = mul %x, %e1
	%y output = mul %xe, %half
}
