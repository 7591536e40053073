# Contents: up to 64 elements are listed, equal ones are splat, short ones are
# bytes, the rest is left out.
# run: --passes=none
graph @f {
	const %few: i32[3] output = {1, -2, 3}
	const %same: f32[65] output = splat 1.5
	const %two: i64[65] output = splat -1
	const %absent: f32[8] output
	const %wide: f32[40,40] output = ...
	param %w: f32[2] = {0.1, 1e-30}
}
# expect:
# graph @f {
# 	const %few: i32[3] output = {1, -2, 3}
# 	const %same: f32[65] output = splat 1.5
# 	const %two: i64[65] output = splat -1
# 	const %absent: f32[8] output = ...
# 	const %wide: f32[40,40] output = ...
# 	param %w: f32[2] = {0.1, 1e-30}
# }
