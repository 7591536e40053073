# Columns are added dim by dim; blocks beside each other are only turned.
# run: --passes=fold
graph @f {
	input %x: f32[2,12,8]
	input %z: f32[2,12,6]
	const %image: i64[2] = {4, 5}
	const %wide: i64[2] = {4, 6}
	const %block: i64[2] = {2, 2}
	%y output = col2im %x, %image, %block {stride=[2,1]}
	%b output = col2im %z, %wide, %block {stride=[2,2]}
}
# expect:
# graph @f {
# 	input %x: f32[2,12,8]
# 	input %z: f32[2,12,6]
# 	const %t11: i64[8] = {0, 1, 1, 2, 2, 3, 3, 4}
# 	%t8: f32[2,3,2,2,2,4] = reshape %x {shape=[2,3,2,2,2,4]}
# 	%t9: f32[2,3,2,2,4,2] = transpose %t8 {perm=[0,1,4,2,5,3]}
# 	%t10: f32[2,3,4,8] = reshape %t9 {shape=[2,3,4,8]}
# 	%y: f32[2,3,4,5] output = scatter_add %t11, %t10 {axis=3, shape=[2,3,4,5]}
# 	%t13: f32[2,3,2,2,2,3] = reshape %z {shape=[2,3,2,2,2,3]}
# 	%t14: f32[2,3,2,2,3,2] = transpose %t13 {perm=[0,1,4,2,5,3]}
# 	%b: f32[2,3,4,6] output = reshape %t14 {shape=[2,3,4,6]}
# }
