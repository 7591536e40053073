# A view lies within its owner.
# run: --passes=none
# error: value 3 (z): elements 15..18 are outside x of 64 bytes
graph @f {
	input %x: f32[4] bytes 64
	%y: f32[4] in %x = reshape %x {shape=[4]}
	%z: f32[4] start 15 in %x = reshape %x {shape=[4]}
}
