# Biases that a product's indices select are added to its rows, by the same
# indices; those that others select are not.
# run: --passes=canon
graph @f {
	input %i: i64[3,2]
	input %j: i64[3,2]
	param %x: f32[3,2,1,4]
	param %w: f32[5,4,7]
	param %c: f32[5,7]
	%wi = gather %w, %i {axis=0}
	%p = matmul %x, %wi
	%ci = gather %c, %i {axis=0}
	%d: f32[3,2,1,7] = reshape %ci {shape=[3,2,1,7]}
	%y output = add %d, %p
	%cj = gather %c, %j {axis=0}
	%e: f32[3,2,1,7] = reshape %cj {shape=[3,2,1,7]}
	%z output = add %p, %e
}
# check: %y.gather: f32[6,7] = gather %c, %p.reshape
# check: %y.add: f32[6,7] = add %p.expert_matmul, %y.gather
# check: %cj: f32[3,2,7] = gather %c, %j
# check-count: 2 = add
