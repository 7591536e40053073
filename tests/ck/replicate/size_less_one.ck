# A sum over samples divided by one less than their number, as in a covariance.
# run: --passes=replicate --dp 2
# error: node 'cov' (Div): cannot split the batch over replicas: it scales a sum over samples by a constant that may be the batch size, or the batch size minus one
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {3}
	props static canon loss
	%y = mul %x, %w
	%p = matmul %y, %y {ta=1}
	%c = div %p, %n from "cov" Div
	%loss: f32[] output = reduce_sum %c {axes=[0,1], keepdims=0}
	loss %loss
}
