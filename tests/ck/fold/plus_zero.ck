# x + 0 turns -0 into 0, so it stays.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2]
# 	input %i: i64[2]
# 	const %zero: f32[] = {0}
# 	%y: f32[2] output = add %x, %zero
# 	%z: i64[2] output = copy %i
# }
graph @f {
	input %x: f32[2]
	input %i: i64[2]
	const %zero: f32[] = {0}
	const %none: i64[] = {0}
	%y output = add %x, %zero
	%z output = add %i, %none
}
