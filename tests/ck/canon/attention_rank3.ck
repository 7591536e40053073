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
# expect:
# graph @f {
# 	input %q: f32[8,3,4]
# 	input %k: f32[8,5,4]
# 	input %v: f32[8,5,6]
# 	%o.reshape: f32[1,8,3,4] = reshape %q {shape=[1,8,3,4]}
# 	%o.reshape.2: f32[1,8,5,4] = reshape %k {shape=[1,8,5,4]}
# 	%o.reshape.3: f32[1,8,5,6] = reshape %v {shape=[1,8,5,6]}
# 	%o.attention: f32[1,8,3,6], %o.attention.lse: f32[1,8,3] = attention %o.reshape, %o.reshape.2, %o.reshape.3 {scale=0.33333333333333331}
# 	%o: f32[8,3,6] output = reshape %o.attention {shape=[8,3,6]}
# }
