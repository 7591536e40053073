# A sum is the part of the whole one as it stands.
# run: --passes=micro,autodiff --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[4,6]
	param %w: f32[6]
	%z = mul %x, %w
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# check: adds
# check: %loss: f32[] output = reduce_sum
# check: = fill {value=1}
