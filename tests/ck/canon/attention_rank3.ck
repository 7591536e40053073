# Heads merged into the batch: a rank of 3 will do.
# run: --passes=canon
graph @f {
	input %q: f32[8,3,4]
	input %k: f32[8,5,4]
	input %v: f32[8,5,6]
	const %c: f32[] = {3}
	%kt = transpose %k {perm=[0,2,1]}
	%qs = div %q, %c
	%s = matmul %qs, %kt
	%p = softmax %s {axis=2}
	%o output = matmul %p, %v
}
