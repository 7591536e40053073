# Nothing but totals outlives a round.
# run: --passes=none
# error: node 2 (reduce_sum, value a): written in round 1, read in round 0
graph @f {
	input %x: f32[4]
	param %w: f32[4]
	%a: f32[4] = mul %x, %w round 1
	%loss: f32[] output = reduce_sum %a {axes=[0], keepdims=0}
	loss %loss
}
