# x[arange(n), i] as TorchScript writes it: rows of flattened samples.
# run: --passes=bind,fold,canon,loss,replicate --dp 2
graph @f {
	input %x: f32[4,3,2]
	input %i: i64[4]
	param %w: f32[2,2]
	const %first: i64[4] = {0, 3, 6, 9}
	%h = matmul %x, %w
	%f: f32[12,2] = reshape %h {shape=[12,2]}
	%at = add %i, %first
	%y = gather %f, %at
	%loss output = reduce_mean %y {axes=[0,1], keepdims=0}
}
# check: gather_nd
# check: share
