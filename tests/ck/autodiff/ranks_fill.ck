# Neither does a resize of a summand fill in what lies outside.
# run: --passes=autodiff
# error: node resize (q): the op would add its bias or constant to a partial sum on every rank
graph @f {
	ranks 2
	props canon loss
	param %a: f32[4,2] placement 1 [4]
	param %b: f32[2,3] placement 0 [4]
	%p: f32[4,3] placement partial = matmul %a, %b
	%q: f32[4,6] placement partial = resize %p {axis=1, extent_in=3, extent_out=6, mode=1, coord=4, fill=1}
	%y: f32[4,6] = all_reduce %q
	%loss: f32[] output = reduce_sum %y {keepdims=0}
	loss %loss
}
