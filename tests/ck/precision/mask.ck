# A stored mask is dropout of ones, as a boolean.
# run: --passes=precision --dropout-mask store
graph @f {
	props static canon loss
	streams 1
	input %x: f32[2,4]
	%d = dropout %x {ratio=0.5, stream=1}
	%loss output = reduce_sum %d {axes=[0,1], keepdims=0}
	loss %loss
}
# check: f32[2,4] = expand
# check: dropout
# check: bool[2,4] = cast
# check: = where
