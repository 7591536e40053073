# Forward only keeps all outputs and wants no loss.
# run: --passes=loss --forward-only
# check: %h: f32[2,3] output
# check: %cost: f32[] output
# check-not: loss
graph @f {
	input %x: f32[2,3]
	%h output = tanh %x
	%cost output = reduce_mean %h {axes=[0,1], keepdims=0}
}
