# A product that only a sum reads is in float32: squares of float16 end at 256.
# One that something else reads, too, is not.  So are powers, and the squares
# that a term is a product with, as for a norm of p = 3.
# run: --passes=precision --dump=precision --dtype f16
graph @f {
	props static canon loss
	input %x: f32[8,8]
	param %w: f32[8,8]
	const %p: f32[] = {2.5}
	%h = matmul %x, %w
	%square = mul %h, %h
	%norm = reduce_sum %square {axes=[1], keepdims=1}
	%both = mul %h, %norm
	%shared = mul %h, %h
	%sum = reduce_sum %shared {axes=[1], keepdims=1}
	%c = add %both, %sum
	%abs = abs %h
	%cube.mul = mul %abs, %abs
	%cube = mul %cube.mul, %abs
	%norm3 = reduce_sum %cube {axes=[1], keepdims=1}
	%pow = pow %abs, %p
	%normp = reduce_mean %pow {axes=[1], keepdims=1}
	%gate.mul = mul %h, %abs
	%gate = mul %gate.mul, %abs
	%pooled = reduce_sum %gate {axes=[1], keepdims=1}
	%norms = add %norm3, %normp
	%more = add %norms, %pooled
	%c2 = add %c, %more
	%d = add %c2, %shared
	%loss: f32[] output = reduce_mean %d {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %square f32 -> f32 mul that is summed
# check: # %shared f32 -> f16 mul of f16 operands
# check: # %cube.mul f32 -> f32 mul that is summed
# check: # %cube f32 -> f32 mul that is summed
# check: # %pow f32 -> f32 pow that is summed
# check: # %gate.mul f32 -> f16 mul of f16 operands
# check: # %gate f32 -> f32 mul that is summed
