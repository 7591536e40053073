# Layout: row-major strides are not written, others are.
# run: --passes=none
graph @f {
	input %x: f32[2,3] bytes 64
	%t: f32[3,2] strides [1,3] in %x = transpose %x {perm=[1,0]}
	%r: f32[6] in %x = reshape %x {shape=[6]}
	%y: f32[3,2] output bytes 64 at 64 = copy %t
}
# check: %t: f32[3,2] strides [1,3] in %x = transpose %x {perm=[1,0]}
# check: %r: f32[6] in %x = reshape %x {shape=[6]}
# check: %y: f32[3,2] output bytes 64 at 64 = copy %t
