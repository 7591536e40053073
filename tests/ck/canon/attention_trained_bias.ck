# A mask that is trained needs a gradient: attention stays in parts.
# run: --passes=canon
# check: softmax
# check-not: attention
graph @f {
	input %q: f32[2,4,3,8]
	input %k: f32[2,4,3,8]
	input %v: f32[2,4,3,8]
	param %m: f32[1,4,3,3]
	%kt = transpose %k {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%u = add %s, %m
	%p = softmax %u {axis=3}
	%o output = matmul %p, %v
}
