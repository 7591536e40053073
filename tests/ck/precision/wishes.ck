# What the user says of values and ops counts; the last word, if there are several.
# run: --passes=precision --dtype bf16 --precision op:matmul=f32 --precision y*=bf16 --precision m=bf16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	%y1 = matmul %x, %w
	%z = matmul %y1, %w
	%m = reduce_mean %z {axes=[1], keepdims=1}
	%loss output = reduce_sum %m {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %y1: bf16[4,8] = matmul
# check: %z: f32[4,8] = matmul
# check: %m: bf16[4,1] = reduce_mean
# check: %loss: f32[] output = reduce_sum
