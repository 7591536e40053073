# A product with a matrix for each row, by index, is a product of experts: the
# matrices on either side, transposed or not, x broadcast over choices.
# run: --passes=canon
graph @f {
	input %i: i64[6,1]
	input %j: i64[3,2]
	param %x: f32[6,4]
	param %z: f32[3,4]
	param %w: f32[5,7,4]
	param %v: f32[5,4,7]
	param %c: f32[5,7]
	%wi = gather_nd %w, %i
	%column: f32[6,4,1] = reshape %x {shape=[6,4,1]}
	%a output = matmul %wi, %column
	%vj = gather %v, %j {axis=0}
	%row: f32[3,1,1,4] = reshape %z {shape=[3,1,1,4]}
	%p = matmul %row, %vj
	%q: f32[3,2,7] = reshape %p {shape=[3,2,7]}
	%cj = gather %c, %j {axis=0}
	%b output = add %q, %cj
}
# check: %a.expert_matmul: f32[6,7] = expert_matmul %x, %w, %a.reshape.2 {tb=1}
# check: %p.expand: f32[3,2,4] = expand
# check: %p.expert_matmul: f32[6,7] = expert_matmul %p.reshape.2, %v, %p.reshape.3
# check: %b.gather: f32[6,7] = gather %c, %p.reshape.3
# check-count: 2 expert_matmul %
# check-not: matmul %wi
# check-not: matmul %row
