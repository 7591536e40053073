# Softmax over one class is 1: its cross entropy would be 0 whatever is learnt.
# run: --passes=loss --loss ce
graph @f {
	input %x: f32[6,1]
	%logits output = tanh %x
}
# error: --loss ce: output 'logits' is f32[6,1], expected two or more classes
