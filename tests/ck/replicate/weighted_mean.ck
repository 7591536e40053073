# Numbers that have nothing to do with the size of the batch.
# run: --passes=replicate --dp 2
# check: loss %loss
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	const %three: f32[] = {3}
	const %half: f32[] = {0.5}
	props static canon loss
	%y = mul %x, %w
	%m = reduce_mean %y {axes=[0,1], keepdims=0}
	%t = div %m, %three from "third" Div
	%loss: f32[] output = mul %t, %half
	loss %loss
}
