# Nothing to minimise: the message says how to make a loss.
# run: --passes=loss
# error: no output is a scalar loss; use --loss ce:LOGITS, or bce, kl, mse, l1 or huber:OUTPUT
graph @f {
	input %x: f32[2,3]
	%y output = tanh %x
}
