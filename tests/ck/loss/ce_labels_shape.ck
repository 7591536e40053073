# A `labels` input that does not fit the logits.
# run: --passes=loss --loss ce
# error: input 'labels' is i64[3], but the loss expects i64[2]
graph @f {
	input %x: f32[2,4]
	input %labels: i64[3]
	%y output = tanh %x
}
