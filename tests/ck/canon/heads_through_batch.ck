# Heads merged with the batch and taken apart again: one transpose, no merge.
# run: --passes=canon
graph @f {
	input %x: f32[12,2,32]
	%a = reshape %x {shape=[12,8,8]}
	%b = transpose %a {perm=[1,0,2]}
	%y output = reshape %b {shape=[2,4,12,8]}
}
# expect:
# graph @f {
# 	input %x: f32[12,2,32]
# 	%y.reshape: f32[12,2,4,8] = reshape %x {shape=[12,2,4,8]}
# 	%y: f32[2,4,12,8] output = transpose %y.reshape {perm=[1,2,0,3]}
# }
