# Bindings by axis obey names, too.
# run: --passes=bind --dim x.0=2 --dim z.0=3
# error: dim 'n' has conflicting sizes: 2 from --dim x.0=2, 3 from --dim z.0=3
graph @f {
	input %x: f32[n]
	input %z: f32[n]
}
