# A difference of integers has no gradient.
# run: --passes=loss --loss mse
# error: --loss mse: no output matches; use --loss mse:OUTPUT
graph @f {
	input %x: i64[2,4]
	%y output = neg %x
}
