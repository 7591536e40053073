# Bindings by axis obey names, too.
# run: --passes=bind --dim x.0=2 --dim z.0=3
# error: dim 'n' is 2 by --dim x.0=2 and 3 by --dim z.0=3
graph @f {
	input %x: f32[n]
	input %z: f32[n]
}
