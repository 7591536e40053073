# Adding zeros and multiplying by ones, repeated or not, does nothing.
# run: --passes=canon
graph @f {
	input %x: f32[2,3]
	const %z: f32[2,3] = splat 0
	const %o: f32[1,3] = splat 1
	%a = add %z, %x
	%b = div %a, %o
	%c = sub %b, %z
	%y output = tanh %c
}
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	%y: f32[2,3] output = tanh %x
# }
