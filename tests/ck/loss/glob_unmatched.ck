# A glob that matches nothing is a mistake.
# run: --passes=loss --output logit
# error: --output logit matches no output
graph @f {
	input %x: f32[2,3]
	%loss output = reduce_mean %x {axes=[0,1], keepdims=0}
	%logits output = tanh %x
}
