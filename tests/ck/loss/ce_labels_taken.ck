# A graph that uses `labels` for something else has no room for another.
# run: --passes=loss --loss ce
# error: the graph already uses that name
graph @f {
	input %labels: f32[2,4]
	%y output = tanh %labels
}
