# Sizes, sequences and one-hot vectors of constants are computed.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	const %size: i64[] output = {6}
# 	const %last: i64[1] output = {3}
# 	const %fill: i64[2,2] output = {7, 7, 7, 7}
# 	const %nz: i64[2,3] output = {0, 0, 1, 0, 2, 1}
# 	const %down: i64[3] output = {5, 3, 1}
# 	const %up: f32[4] output = {0, 0.25, 0.5, 0.75}
# 	const %hot: f32[3,3] output = {1, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5}
# 	const %cum: i64[3] output = {0, -1, 2}
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
