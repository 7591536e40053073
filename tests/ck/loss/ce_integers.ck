# Logits are floats.
# run: --passes=loss --loss ce:y
# error: --loss ce: output 'y' is i64[2,4], expected float logits of rank 2 or more
graph @f {
	input %x: i64[2,4]
	%y output = neg %x
}
