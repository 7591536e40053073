# Nothing but totals outlives a round.
# run: --passes=none
# error: node 2 (reduce_sum, value a): written in count pass 1, read in count pass 0
graph @f {
	input %x: f32[4]
	param %w: f32[4]
	%a: f32[4] = mul %x, %w round 1
	%loss: f32[] output = reduce_sum %a {axes=[0], keepdims=0}
	loss %loss
}
