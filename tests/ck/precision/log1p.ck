# log(1 + u) and exp(u) - 1 of a small u are 0 in 16 bits: what logarithms read
# is computed in float32, and so are differences of exponentials and numbers.
# run: --passes=precision --dump=precision --dtype bf16
graph @f {
	props static canon loss
	input %x: f32[8,8]
	param %w: f32[8,8]
	const %one: f32[] = {1}
	%h = matmul %x, %w
	%u = mul %h, %h
	%v = add %u, %one
	%l = log %v
	%e = exp %h
	%m = sub %e, %one
	%other = add %h, %one
	%a = add %l, %m
	%b = add %a, %other
	%loss: f32[] output = reduce_mean %b {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %u f32 -> f32 input of a logarithm
# check: # %v f32 -> f32 input of a logarithm
# check: # %l f32 -> f32 logarithm
# check: # %e f32 -> f32 exponential less a number
# check: # %m f32 -> f32 exponential less a number
# check: # %other f32 -> bf16
