# Two scalars, none of them named "loss".
# run: --passes=loss
# error: several outputs are scalars; use --loss OUTPUT
graph @f {
	input %x: f32[2,3]
	%a output = reduce_sum %x {axes=[0,1], keepdims=0}
	%b output = reduce_mean %x {axes=[0,1], keepdims=0}
}
