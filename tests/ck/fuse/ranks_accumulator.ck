# Rows in two stretches: what a product adds to is cut as the product, which a rank's shapes do not say.
# run: --passes=fuse
graph @f {
	ranks 2
	props bound static canon loss
	param %w: f32[4,4]
	param %d: f32[2,2,4] placement 1 [4]
	param %x: f32[4,4] placement 0 [4,4]
	%e: f32[2,2,4] placement 1 [4] = softmax %d {axis=2}
	%w.r: f32[4,4] placement replicate_partial = replicate %w
	%p: f32[4,4] placement 0 [4,4] = matmul %x, %w.r
	%q: f32[2,2,4] placement 1 [4] = reshape %p {shape=[2,2,4]}
	%y: f32[2,2,4] placement 1 [4] = add %e, %q
	%s: f32[] placement partial = reduce_sum %y {axes=[0,1,2], keepdims=0}
	%loss: f32[] output = all_reduce %s
	loss %loss
}
# check: placement 0 [4,4] = reshape %e {shape=[4,4]}
# check: placement 0 [4,4] = matmul %x, %w.r, _, %
