# A mean over samples, times a number of them that no formula has.
# run: --passes=replicate --dp 2
# error: use a mean or a sum in the model instead: replace y.mean() * N by y.sum(); try: --dp off
graph @f {
	input %x: f32[16,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {16}
	props static canon loss
	%y = mul %x, %w
	%t = reduce_mean %y {axes=[0,1], keepdims=0}
	%loss: f32[] output = mul %t, %n from "m" Mul
	loss %loss
}
