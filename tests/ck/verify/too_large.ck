# A tensor whose bytes no 64-bit number counts is a fault of the input.
# run: --passes=none
# run:
# error: value 1 (x): is too large
graph @f {
	input %x: f32[4611686018427387904]
}
