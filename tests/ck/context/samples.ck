# Eight samples or fewer lie in segments of one dim; more of them are refused where a part of a whole
# value is taken there.
# run: --passes=context --cp 2 --cp-dim x=1
# error: expected at most 8 samples with their positions in one dim
graph @f {
	input %x: f32[9,2,3]
	input %t: f32[18,3]
	param %w: f32[3,3]
	%r = reshape %x {shape=[18,3]}
	%y = matmul %r, %w
	%d = sub %y, %t
	%q = mul %d, %d
	%loss output = reduce_mean %q {axes=[0,1], keepdims=0}
	loss %loss
}
