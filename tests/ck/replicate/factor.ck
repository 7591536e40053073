# A constant that is no multiple of the batch, or no divisor of what is summed,
# is a factor of the loss.  One so small that formulas have it, too, gets a
# note if it may be the size of the batch.
# run: --passes=replicate --dp 2
# stderr: note: node 'm' (Mul): a sum over samples is scaled by 0.125, which is treated as a constant; if it is the batch size, use a mean without the factor
# check: = div %s, %n
# check: = mul %t, %half
graph @f {
	input %x: f32[8,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {1000}
	const %half: f32[] = {0.125}
	props static canon
	%y = mul %x, %w
	%s = reduce_sum %y {axes=[0,1], keepdims=0}
	%t = div %s, %n from "d" Div
	%loss: f32[] output = mul %t, %half from "m" Mul
}
