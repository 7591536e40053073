# Dropout gets numbered streams; inside attention it becomes an attribute.
# run: --passes=canon
graph @f {
	input %x: f32[2,4,3,8]
	%q = dropout %x {ratio=0.1}
	%kt = transpose %x {perm=[0,1,3,2]}
	%s = matmul %q, %kt
	%p = softmax %s {axis=3}
	%d = dropout %p {ratio=0.2}
	%o output = matmul %d, %x
}
