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
# expect:
# graph @f {
# 	streams 2
# 	input %x: f32[2,4,3,8]
# 	%q: f32[2,4,3,8] = dropout %x {ratio=0.1, stream=1}
# 	%o: f32[2,4,3,8] output, %o.lse: f32[2,4,3] = attention %q, %x, %x {ratio=0.2, stream=2}
# }
