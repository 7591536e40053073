# A mean over samples made an unbiased variance, n / (n - 1) times as much.
# run: --passes=replicate --dp 2
# error: node 'var' (Div): cannot split the batch over replicas: it scales a sum over samples by a constant that may be the batch size, or the batch size minus one
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {4}
	const %less: f32[] = {3}
	props static canon loss
	%y = mul %x, %w
	%s = mul %y, %y
	%m = reduce_mean %s {axes=[0], keepdims=0}
	%t = mul %m, %n
	%v = div %t, %less from "var" Div
	%loss: f32[] output = reduce_sum %v {axes=[0], keepdims=0}
	loss %loss
}
