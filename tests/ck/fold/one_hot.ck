# Indices known at run time are compared with each class.
# run: --passes=fold
# expect:
# graph @f {
# 	input %i: i32[2]
# 	const %t7: f32[] = {-1}
# 	const %t8: f32[] = {1}
# 	const %t10: i64[] = {0}
# 	const %t11: i64[] = {3}
# 	const %t16: i64[3,1] = {0, 1, 2}
# 	%t9: i64[2] = cast %i {to=i64}
# 	%t12: bool[2] = lt %t9, %t10
# 	%t13: i64[2] = add %t9, %t11
# 	%t14: i64[2] = where %t12, %t13, %t9
# 	%t15: i64[1,2] = reshape %t14 {shape=[1,2]}
# 	%t17: bool[3,2] = eq %t15, %t16
# 	%y: f32[3,2] output = where %t17, %t8, %t7
# }
graph @f {
	input %i: i32[2]
	const %depth: i64[] = {3}
	const %values: f32[2] = {-1,1}
	%y output = one_hot %i, %depth, %values {axis=0}
}
