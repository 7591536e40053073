# The only scalar output is the loss whatever its name.
# run: --passes=loss
# check: loss %cost
graph @f {
	input %x: f32[2,3]
	%h output = tanh %x
	%cost output = reduce_mean %h {axes=[0,1], keepdims=0}
}
