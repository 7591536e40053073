# Indices known at run time are compared with each class.
# run: --passes=fold
# expect:
# graph @f {
# 	input %i: i32[2]
# 	const %t6: i64[] = {0}
# 	const %t7: i64[] = {3}
# 	const %t12: i64[3,1] = {0, 1, 2}
# 	const %t14: f32[] = {1}
# 	const %t15: f32[] = {-1}
# 	%t5: i64[2] = cast %i {to=i64}
# 	%t8: bool[2] = lt %t5, %t6
# 	%t9: i64[2] = add %t5, %t7
# 	%t10: i64[2] = where %t8, %t9, %t5
# 	%t11: i64[1,2] = reshape %t10 {shape=[1,2]}
# 	%t13: bool[3,2] = eq %t11, %t12
# 	%y: f32[3,2] output = where %t13, %t14, %t15
# }
graph @f {
	input %i: i32[2]
	const %depth: i64[] = {3}
	const %values: f32[2] = {-1,1}
	%y output = one_hot %i, %depth, %values {axis=0}
}
