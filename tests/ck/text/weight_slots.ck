# A micro-batch that waits for its weight turn has a slot of all that lives up to there.
# run: --passes=none
# error: expected at least 3 slots up to weight turns, found 2
graph @f {
	stage 1 3 3 weight 2 2
	input %x: f32[4]
	%y: f32[4] output = exp %x
}
