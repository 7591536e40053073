# Rows i + {0, T, 2 T, ...} of what has T rows of each sample: one of its own.
# run: --passes=fold
graph @f {
	props bound
	input %x: f32[12,2]
	input %i: i64[4]
	const %first: i64[4] = {0, 3, 6, 9}
	const %other: i64[4] = {0, 3, 6, 10}
	%at = add %first, %i
	%y output = gather %x, %at
	%at2 = add %i, %other
	%z output = gather %x, %at2
}
# expect:
# graph @f {
# 	input %x: f32[12,2]
# 	input %i: i64[4]
# 	const %other: i64[4] = {0, 3, 6, 10}
# 	%t9: f32[4,3,2] = reshape %x {shape=[4,3,2]}
# 	%t10: i64[4,1] = reshape %i {shape=[4,1]}
# 	%y: f32[4,2] output = gather_nd %t9, %t10 {batch=1}
# 	%at2: i64[4] = add %i, %other
# 	%z: f32[4,2] output = gather %x, %at2
# }
