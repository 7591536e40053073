# Sizes, sequences and one-hot vectors of constants are computed.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	const %t21: i64[] = {6}
# 	const %t23: i64[1] = {3}
# 	const %t25: i64[2,2] = {7, 7, 7, 7}
# 	const %t27: i64[2,3] = {0, 0, 1, 0, 2, 1}
# 	const %t29: i64[3] = {5, 3, 1}
# 	const %t31: f32[4] = {0, 0.25, 0.5, 0.75}
# 	const %t33: f32[3,3] = {1, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5}
# 	const %t35: i64[3] = {0, -1, 2}
# 	%size: i64[] output = copy %t21
# 	%last: i64[1] output = copy %t23
# 	%fill: i64[2,2] output = copy %t25
# 	%nz: i64[2,3] output = copy %t27
# 	%down: i64[3] output = copy %t29
# 	%up: f32[4] output = copy %t31
# 	%hot: f32[3,3] output = copy %t33
# 	%cum: i64[3] output = copy %t35
# }
graph @f {
	input %x: f32[2,3]
	const %to: i64[2] = {2,2}
	const %m: bool[2,3] = {1,0,1,0,1,0}
	const %a: i64[] = {5}
	const %b: i64[] = {0}
	const %s: i64[] = {-2}
	const %f: f32[] = {0}
	const %g: f32[] = {1}
	const %h: f32[] = {0.25}
	const %i: i64[3] = {0,-1,3}
	const %depth: i64[] = {3}
	const %values: f32[2] = {0.5,1}
	%size output = size %x
	%last output = shape %x {start=-1}
	%fill output = constant_of_shape %to {dt=5, value=7}
	%nz output = nonzero %m
	%down output = range %a, %b, %s
	%up output = range %f, %g, %h
	%hot output = one_hot %i, %depth, %values
	%cum output = cumsum %i, %b
}
