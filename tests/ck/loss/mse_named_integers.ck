# The same when it is named.
# run: --passes=loss --loss mse:y
# error: --loss mse: output 'y' is i64[2,4], expected floats
graph @f {
	input %x: i64[2,4]
	%y output = neg %x
}
