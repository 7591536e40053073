# An element count that overflows equals no other.
# run: --passes=canon
# error: f32[12,8,8] cannot be reshaped to ?[2,4,12,4611686018427387904]
graph @f {
	input %x: f32[12,8,8]
	%y output = reshape %x {shape=[2,4,12,4611686018427387904]}
}
