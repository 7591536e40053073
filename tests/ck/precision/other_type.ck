# There is one narrow type.
# run: --passes=precision --dtype bf16 --precision y=f16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	%y = matmul %x, %w
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# error: --precision y=f16: expected f32 or the type of --dtype
