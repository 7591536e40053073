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
	const %low3: f32[] = {-5}
	const %p: f32[2] = {1, 2}
	const %q: f32[2] = {1, 3}
	const %cube: f32[2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%le = le %i, %r
	%m = where %le, %see, %low
	%y = add %x, %m
	%i2 = range %zero2, %n2, %one2
	%r2 = unsqueeze %i2, %rows
	%le2 = le %i2, %r2
	%m2 = where %le2, %see, %low2
	%z = add %y, %m2
	%m3 = where %le2, %see, %low3
	%last output = add %z, %m3
	%np output = neg %p
	%nq output = neg %q
	%c1 output = transpose %cube {perm=[1,0,2]}
	%c2 output = transpose %cube {perm=[2,1,0]}
}
# expect:
# graph @f {
# 	input %x: f32[12,12]
# 	const %see: f32[] = {0}
# 	const %low: f32[] = {-1e+09}
# 	const %low3: f32[] = {-5}
# 	const %i: i64[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
# 	const %r: i64[12,1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
# 	const %t32: f32[2] = {-1, -2}
# 	const %t34: f32[2] = {-1, -3}
# 	const %t36: f32[2,2,2] = {1, 2, 5, 6, 3, 4, 7, 8}
# 	const %t38: f32[2,2,2] = {1, 5, 3, 7, 2, 6, 4, 8}
# 	%le: bool[12,12] = le %i, %r
# 	%m: f32[12,12] = where %le, %see, %low
# 	%y: f32[12,12] = add %x, %m
# 	%z: f32[12,12] = add %y, %m
# 	%m3: f32[12,12] = where %le, %see, %low3
# 	%last: f32[12,12] output = add %z, %m3
# 	%np: f32[2] output = copy %t32
# 	%nq: f32[2] output = copy %t34
# 	%c1: f32[2,2,2] output = copy %t36
# 	%c2: f32[2,2,2] output = copy %t38
# }
