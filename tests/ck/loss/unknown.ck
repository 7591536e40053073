# A name that no output has.
# run: --passes=loss --loss z
# error: no output and no kind of loss is named 'z'
graph @f {
	input %x: f32[2,3]
	%y output = tanh %x
}
