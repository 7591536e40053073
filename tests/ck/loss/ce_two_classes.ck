# Two classes are the fewest that cross entropy tells apart.
# run: --passes=loss --loss ce
graph @f {
	input %x: f32[6,2]
	%logits output = tanh %x
}
# check: sce %logits, %labels
