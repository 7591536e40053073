# Several rows for each of no more indices than matrices, another axis, numbers of
# 64 bits, a factor, and tables of rows stay as they are.
# run: --passes=canon
graph @f {
	input %i: i64[4]
	param %x: f32[4,2,4]
	param %w: f32[5,4,7]
	param %u: f32[6,5,2]
	param %y: f32[6,2,4]
	param %d: f64[5,4,7]
	param %e: f64[4,1,4]
	param %t: f32[5,4]
	%wi = gather %w, %i {axis=0}
	%rows output = matmul %x, %wi
	%ui = gather %u, %i {axis=1}
	%axis output = matmul %ui, %y
	%di = gather %d, %i {axis=0}
	%wide output = matmul %e, %di
	%one: f32[4,1,4] = slice %x {start=[0,0,0], step=[1,1,1]}
	%half output = matmul %one, %wi {alpha=0.5}
	%ti = gather %t, %i {axis=0}
	%table output = matmul %ti, %ti {tb=1}
}
# check-not: expert_matmul
