# A number of the batch of which nobody knows how it grows.
# run: --passes=bind,fold,canon,loss,replicate --dp 2
# error: its value depends on the batch size, but ckc cannot derive how
graph @f {
	input %x: f32[batch=4,3]
	param %w: f32[3] = splat 1
	const %to: i64[2] = {2,6}
	%r = reshape %x, %to
	%i = size %r
	%n = cast %i {to=f32}
	%q = mul %x, %w
	%y = reduce_sum %q {axes=[0,1], keepdims=0}
	%loss: f32[] output = div %y, %n
	loss %loss
}
