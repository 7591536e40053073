# Probabilities that were an output are none any more: attention is fused.
# run: --passes=loss
# check: attention
# check-not: softmax
graph @f {
	input %q: f32[2,4,3,8]
	%s = matmul %q, %q {tb=1}
	%p output = softmax %s {axis=3}
	%o = matmul %p, %q
	%loss output = reduce_mean %o {axes=[0,1,2,3], keepdims=0}
}
