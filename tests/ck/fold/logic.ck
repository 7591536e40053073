# Constant masks decide or drop out.
# run: --passes=fold
# expect:
# graph @f {
# 	input %m: bool[2,3]
# 	input %x: f32[2,3]
# 	input %n: i64[2,3]
# 	const %low: f32[] = {-1}
# 	%y: f32[2,3] output = where %m, %x, %low
# 	%z: f32[2,3] output = copy %x
# 	%h: bool[2,3] output = copy %m
# }
graph @f {
	input %m: bool[2,3]
	input %x: f32[2,3]
	input %n: i64[2,3]
	const %true: bool[2,3] = splat 1
	const %false: bool[1,3] = splat 0
	const %low: f32[] = {-1}
	%a = and %m, %true
	%b = or %false, %a
	%c = not %b
	%d = not %c
	%e = xor %d, %false
	%y output = where %e, %x, %low
	%f = and %m, %false
	%z output = where %f, %low, %x
	%g = isnan %n
	%h output = or %m, %g
}
