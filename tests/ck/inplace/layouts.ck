# Not over an operand that another one reads in a different layout, and not
# over an input of the step.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,4]
	%a: f32[4,4] = exp %x
	%t: f32[4,4] = transpose %a {perm=[1,0]}
	%b: f32[4,4] = add %a, %t
	%y: f32[4,4] output = reduce_sum %b {axes=[], noop=1}
}
# expect:
# graph @f {
# 	props loss planned
# 	input %x: f32[4,4] bytes 64
# 	%a: f32[4,4] bytes 64 = loop %x [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%t: f32[4,4] strides [1,4] in %a = transpose %a {perm=[1,0]}
# 	%b: f32[4,4] bytes 64 = loop %a, %t [
# 		t0: f32 = add a0, a1
# 		give t0
# 	]
# 	%y: f32[4,4] output bytes 64 = reduce_sum %b {noop=1}
# }
