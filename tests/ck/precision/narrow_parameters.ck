# Without masters, parameters are narrow, and so are their contents.
# run: --passes=precision --dtype bf16 --master-weights off
graph @f {
	props static canon loss
	input %x: f32[2,2]
	input %t: f32[2,2]
	param %w: f32[2,2] = {1.001, 2, 3, -4.02}
	%y = matmul %x, %w
	%loss output = reduce_mean %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: param %w: bf16[2,2] = {1, 2, 3, -4.03125}
# check: %y: bf16[2,2] = matmul
# check: f32[2,2] = cast %y
# check: %loss: f32[] output = reduce_mean
