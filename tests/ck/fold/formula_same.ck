# Constants too large to be computed are made once, however often they are
# built; what their layers hold is their own.
# run: --passes=fold --fold-limit=100
graph @f {
	input %x: f32[12,12]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {12}
	const %zero2: i64[] = {0}
	const %one2: i64[] = {1}
	const %n2: i64[] = {12}
	const %rows: i64[1] = {1}
	const %see: f32[] = {0}
	const %low: f32[] = {-1e9}
	const %low2: f32[] = {-1e9}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%le = le %i, %r
	%m = where %le, %see, %low
	%y = add %x, %m
	%i2 = range %zero2, %n2, %one2
	%r2 = unsqueeze %i2, %rows
	%le2 = le %i2, %r2
	%m2 = where %le2, %see, %low2
	%z output = add %y, %m2
}
# expect:
# graph @f {
# 	input %x: f32[12,12]
# 	const %see: f32[] = {0}
# 	const %low: f32[] = {-1e+09}
# 	const %i: i64[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
# 	const %r: i64[12,1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
# 	%le: bool[12,12] = le %i, %r
# 	%m: f32[12,12] = where %le, %see, %low
# 	%y: f32[12,12] = add %x, %m
# 	%z: f32[12,12] output = add %y, %m
# }
