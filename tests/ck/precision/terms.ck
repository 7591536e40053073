# A product that only a sum reads is in float32: squares of float16 end at 256.
# One that something else reads, too, is not.
# run: --passes=precision --dump=precision --dtype f16
graph @f {
	props static canon loss
	input %x: f32[8,8]
	param %w: f32[8,8]
	%h = matmul %x, %w
	%square = mul %h, %h
	%norm = reduce_sum %square {axes=[1], keepdims=1}
	%both = mul %h, %norm
	%shared = mul %h, %h
	%sum = reduce_sum %shared {axes=[1], keepdims=1}
	%c = add %both, %sum
	%d = add %c, %shared
	%loss: f32[] output = reduce_mean %d {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %square f32 -> f32 mul that is summed
# check: # %shared f32 -> f16 mul of f16 operands
