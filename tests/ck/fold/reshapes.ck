# Squeeze, unsqueeze and flatten are reshapes; reshapes in a row are one.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,1,3,1]
# 	const %t12: i64[2] = {7, 8}
# 	const %t14: i64[1,2,1] = {7, 8}
# 	const %t16: i64[1,2] = {7, 8}
# 	%a: f32[2,3] output = reshape %x {shape=[2,3]}
# 	%b: f32[2,3,1] output = reshape %x {shape=[2,3,1]}
# 	%d: f32[2,3] output = reshape %x {shape=[2,3]}
# 	%e: i64[2] output = copy %t12
# 	%k: i64[1,2,1] output = copy %t14
# 	%l: i64[1,2] output = copy %t16
# }
graph @f {
	input %x: f32[2,1,3,1]
	const %axes: i64[2] = {0,-1}
	const %one: i64[1] = {1}
	const %c: i64[1,2] = {7,8}
	%a output = squeeze %x
	%b output = squeeze %x, %one
	%u = unsqueeze %x, %axes
	%d output = flatten %u {axis=2}
	%e output = squeeze %c
	%k output = unsqueeze %e, %axes
	%l output = flatten %k {axis=1}
}
