# The same for --stop-after.
# run: --stop-after=frob
# error: --stop-after: there is no pass 'frob'
graph @f {
	input %x: f32[2]
}
