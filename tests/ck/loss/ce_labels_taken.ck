# A graph that uses `labels` for something else has no room for another.
# run: --passes=loss --loss ce
# error: the graph uses that name already
graph @f {
	input %labels: f32[2,4]
	%y output = tanh %labels
}
