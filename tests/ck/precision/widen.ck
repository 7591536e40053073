# --dtype f32 makes a 16-bit graph a float32 one.
# run: --passes=precision --dtype f32
graph @f {
	props static canon loss
	input %x: bf16[4,8]
	param %w: bf16[8,8]
	%m = matmul %x, %w
	%loss output = reduce_sum %m {axes=[0,1], keepdims=0}
	loss %loss
}
# check: param %w: f32[8,8]
# check: f32[4,8] = cast %x
# check: %m: f32[4,8] = matmul
# check: %loss: f32[] output
