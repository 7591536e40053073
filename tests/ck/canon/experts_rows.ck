# Of more indices than matrices, several rows that share one are rows with it
# each, on either side.
# run: --passes=canon
graph @f {
	input %i: i64[6]
	param %x: f32[6,2,4]
	param %z: f32[6,4,3]
	param %w: f32[5,4,7]
	param %v: f32[5,8,4]
	%wi = gather %w, %i {axis=0}
	%a output = matmul %x, %wi
	%vi = gather %v, %i {axis=0}
	%b output = matmul %vi, %z
}
# check: %a.expert_matmul: f32[12,7] = expert_matmul
# check: %b.expert_matmul: f32[18,8] = expert_matmul
# check: %b: f32[6,8,3] output = transpose
# check-not: = matmul
