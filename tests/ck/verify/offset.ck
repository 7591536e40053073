# Offsets are multiples of 64.
# run: --passes=none
# error: value 2 (y): invalid offset 32
graph @f {
	input %x: f32[4] bytes 64
	%y: f32[4] bytes 64 at 32 = copy %x
}
