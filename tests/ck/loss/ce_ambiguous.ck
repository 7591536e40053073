# Two outputs that may be logits, none of them so named.
# run: --passes=loss --loss ce
# error: --loss ce: several outputs match; use --loss ce:OUTPUT
graph @f {
	input %x: f32[2,4]
	%y output = tanh %x
	%z output = neg %x
}
