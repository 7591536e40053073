# A causal mask is computed, cut to what does not repeat, and shared.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,2,3,3]
# 	input %z: f32[2,2,3,3]
# 	const %low: f32[] = {-1e+09}
# 	const %e.2.2: bool[1,1,3,3] = {1, 0, 0, 1, 1, 0, 1, 1, 1}
# 	%y: f32[2,2,3,3] output = where %e.2.2, %x, %low
# 	%y2: f32[2,2,3,3] output = where %e.2.2, %z, %low
# }
graph @f {
	input %x: f32[2,2,3,3]
	input %z: f32[2,2,3,3]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {3}
	const %rows: i64[1] = {1}
	const %cols: i64[1] = {0}
	const %shape: i64[4] = {2,2,3,3}
	const %low: f32[] = {-1e9}
	%i = range %zero, %n, %one
	%q = unsqueeze %i, %rows
	%k = unsqueeze %i, %cols
	%m = le %k, %q
	%e = expand %m, %shape
	%y output = where %e, %x, %low
	%m2 = ge %q, %k
	%e2 = expand %m2, %shape
	%y2 output = where %e2, %z, %low
}
