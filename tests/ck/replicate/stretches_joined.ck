# Two halves and one stretch more than a split lists, joined.
# run: --passes=replicate --dp=2
# error: node 'j' (concat): cannot split the batch over replicas
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	props static canon loss
	%y = mul %x, %w
	%e = expand %y {shape=[524289,4,3]}
	%f = reshape %e {shape=[2097156,3]}
	%j = concat %f, %f {axis=0}
	%loss: f32[] output = reduce_mean %j {axes=[0,1], keepdims=0}
	loss %loss
}
