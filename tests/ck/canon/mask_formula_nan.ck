# Sums of opposite infinities and products of zero and infinity are no numbers,
# which no bound tells: such a mask hides something though -inf <= inf.
# run: --passes=fold,canon --fold-limit=100
# check: %m: bool[16,16] = ge %sum, %low
# check: %o.reshape: bool[1,1,16,16] = reshape %m
# check: attention %q, %q, %q, %o.reshape
# check: %m2: bool[16,16] = ge %prod, %low
# check: %o2.reshape: bool[1,1,16,16] = reshape %m2
# check: attention %o, %o, %o, %o2.reshape
graph @f {
	input %q: f32[2,2,16,4]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {16}
	const %rows: i64[1] = {1}
	const %cols: i64[1] = {0}
	const %see: f32[] = {0}
	const %low: f32[] = {-inf}
	const %high: f32[] = {inf}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%c = unsqueeze %i, %cols
	%le = le %c, %r
	%a = where %le, %see, %low
	%b = where %le, %see, %high
	%sum = add %a, %b
	%m = ge %sum, %low
	%s = matmul %q, %q {tb=1}
	%u = where %m, %s, %low
	%p = softmax %u {axis=3}
	%o = matmul %p, %q
	%d = sub %r, %c
	%df = cast %d {to=f32}
	%prod = mul %df, %high
	%m2 = ge %prod, %low
	%s2 = matmul %o, %o {tb=1}
	%u2 = where %m2, %s2, %low
	%p2 = softmax %u2 {axis=3}
	%o2 output = matmul %p2, %o
}
