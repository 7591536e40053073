# A mean over samples, times their number, is a sum in one replica's file: over
# replicas it is one only if the number is taken for their size.
# run: --passes=replicate --dp 2
# stderr: note: node 'm' (Mul): a mean over samples is scaled by 4, which is treated as a constant; if it is the batch size, use a sum without the factor
# check: = mul %t, %n
graph @f {
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	const %n: f32[] = {4}
	props static canon
	%y = mul %x, %w
	%t = reduce_mean %y {axes=[0,1], keepdims=0}
	%loss: f32[] output = mul %t, %n from "m" Mul
}
