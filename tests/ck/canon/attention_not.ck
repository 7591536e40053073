# What looks like attention: a factor that scales the mask, too; a softmax over
# the queries.
# run: --passes=canon
# check-count: 2 softmax
# check-not: attention
graph @f {
	input %q: f32[2,4,5,5]
	input %k: f32[2,4,5,5]
	input %v: f32[2,4,5,5]
	input %m: f32[1,1,5,5]
	const %c: f32[] = {0.25}
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%u = add %s, %m
	%w = mul %u, %c
	%p = softmax %w {axis=3}
	%o output = matmul %p, %v
	%s2 = matmul %q, %kt
	%p2 = softmax %s2 {axis=2}
	%o2 output = matmul %p2, %v
}
