# A comparison too large to be computed that is built twice, and returned.
# run: --passes=fold --fold-limit=100
# check: %le2: bool[12,12] output = le %i, %r
# check: cast %le2
graph @f {
	input %x: f32[12,12]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {12}
	const %rows: i64[1] = {1}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%le = le %i, %r
	%m = cast %le {to=f32}
	%y output = add %x, %m
	%le2 output = le %i, %r
}
