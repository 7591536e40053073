# What goes between ranks is contiguous: of a transposed view, which a product takes as it is, a collective gets a copy.
# run: --passes=layout
graph @f {
	ranks 2
	props canon loss bwd upd
	param %v: f32[4,3] placement 1 [6]
	param %w: f32[3,6] placement 0 [6]
	input %x: f32[4,4]
	%z: f32[4,6] placement partial = matmul %v, %w
	%t: f32[6,4] placement partial = transpose %z {perm=[1,0]}
	%y: f32[6,4] output = all_reduce %t
	%o: f32[6,4] placement partial = matmul %t, %x
	%s: f32[6,4] output = all_reduce %o
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %t: f32[6,4] placement partial strides [1,6] in %z = transpose %z
# check: %t10: f32[6,4] placement partial bytes 128 = copy %t
# check: %y: f32[6,4] output bytes 128 = all_reduce %t10
# check: %o: f32[6,4] placement partial bytes 128 = matmul %t, %x
