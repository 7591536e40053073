# A convolution of a summand adds no bias: every rank would.
# run: --passes=autodiff
# error: node conv (q): the op would add its bias or constant to a partial sum on every rank
graph @f {
	ranks 2
	props canon loss
	param %a: f32[4,2] placement 1 [4]
	param %b: f32[2,3] placement 0 [4]
	input %w: f32[2,4,1]
	input %c: f32[2]
	%p: f32[4,3] placement partial = matmul %a, %b
	%x: f32[1,4,3] placement partial = reshape %p {shape=[1,4,3]}
	%q: f32[1,2,3] placement partial = conv %x, %w, %c
	%y: f32[1,2,3] = all_reduce %q
	%loss: f32[] output = reduce_sum %y {keepdims=0}
	loss %loss
}
