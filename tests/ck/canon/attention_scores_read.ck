# Probabilities that are an output must exist.
# run: --passes=canon
# check: softmax
# check-not: attention
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,4,3,8]
	input %v: f32[2,4,3,8]
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%p output = softmax %s {axis=3}
	%o output = matmul %p, %v
}
