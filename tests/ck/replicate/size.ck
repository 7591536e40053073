# A sum over samples divided by their number: in the file that is a constant,
# which is another batch's, too.
# run: --passes=replicate --dp 2
# error: it scales a sum over samples by a constant that may be the batch size, or the batch size minus one; use a mean or a sum in the model instead: replace y.sum() / N by y.flatten(1).sum(1).mean(), where y may be kl_div(..., reduction='none'); try: --dp off
graph @f {
	input %x: f32[8,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {8}
	props static canon loss
	%y = mul %x, %w
	%s = reduce_sum %y {axes=[0,1], keepdims=0}
	%loss: f32[] output = div %s, %n from "loss" Div
	loss %loss
}
