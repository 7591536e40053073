# An input without a shape gets it from --shape.
# run: --passes=bind --shape x=3x4
# expect:
# graph @f {
# 	input %x: f32[3,4]
# }
graph @f {
	input %x: f32[*]
}
