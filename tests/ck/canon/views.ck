# Reshapes and transposes that cancel, an expand in front of a sum, a power of
# two in a division, equal nodes.
# run: --passes=canon
graph @f {
	input %x: f32[2,3,4]
	input %b: f32[1,1,4]
	const %eight: f32[] = {8}
	%r = reshape %x {shape=[6,4]}
	%s = reshape %r {shape=[2,3,4]}
	%t = transpose %s {perm=[0,2,1]}
	%u = transpose %t {perm=[0,2,1]}
	%e = expand %b {shape=[2,3,4]}
	%a = add %u, %e
	%a2 = add %x, %b
	%d = div %a, %eight
	%y output = mul %d, %a2
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	input %b: f32[1,1,4]
# 	const %t13: f32[] = {0.125}
# 	%a: f32[2,3,4] = add %x, %b
# 	%d: f32[2,3,4] = mul %a, %t13
# 	%y: f32[2,3,4] output = mul %d, %a
# }
