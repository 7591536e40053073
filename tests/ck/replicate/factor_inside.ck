# A factor of what is summed may be the size of the batch, too.
# run: --passes=replicate --dp 2
# stderr: note: node 's' (ReduceSum): a sum over samples is scaled by 0.125, which is treated as a constant; if it is the batch size, use a mean without the factor
# check: = reduce_sum
graph @f {
	input %x: f32[8,3]
	param %w: f32[3] = splat 1
	const %each: f32[1,1] = {8}
	const %half: f32[] = {0.5}
	props static canon
	%y = mul %x, %w
	%z = mul %y, %half
	%v = div %y, %each
	%u = reduce_sum %z {axes=[1], keepdims=0}
	%s = reduce_sum %v {axes=[0,1], keepdims=0} from "s" ReduceSum
	%t = reduce_sum %u {axes=[0], keepdims=0}
	%loss: f32[] output = add %s, %t
}
