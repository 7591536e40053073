# What is computed again may stand among forward nodes.
# run: --passes=none
graph @f {
	input %x: f32[2]
	%y = exp %x
	%z = neg %y
	%y.again of %y = exp %x @recompute again %y
	%u output = add %z, %y.again
}
# expect:
# graph @f {
# 	input %x: f32[2]
# 	%y: f32[2] = exp %x
# 	%z: f32[2] = neg %y
# 	%y.again: f32[2] of %y = exp %x @recompute again %y
# 	%u: f32[2] output = add %z, %y.again
# }
