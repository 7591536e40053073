# What only looks causal is no causal mask: one key more, one element off, a
# query that sees no key by a finite number.
# run: --passes=fold,canon --fold-limit=100
graph @f {
	input %q: f32[1,1,16,4]
	input %k: f32[1,1,12,4]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {16}
	const %m: i64[] = {12}
	const %four: i64[] = {4}
	const %rows: i64[1] = {1}
	const %cols: i64[1] = {0}
	const %low: f32[] = {-inf}
	const %finite: f32[] = {-1e9}
	const %see: f32[] = {0}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%c = unsqueeze %i, %cols
	%next = add %r, %one
	%le = le %c, %next
	%s = matmul %q, %q {tb=1}
	%t = where %le, %s, %low
	%p = softmax %t {axis=3}
	%o output = matmul %p, %q
	%product = mul %r, %c
	%corner = eq %product, %zero
	%past = le %c, %r
	%odd = or %past, %corner
	%s2 = matmul %q, %q {ta=0, tb=1, alpha=2}
	%t2 = where %odd, %s2, %low
	%p2 = softmax %t2 {axis=3}
	%o2 output = matmul %p2, %q
	%j = range %zero, %m, %one
	%d = unsqueeze %j, %cols
	%back = sub %r, %four
	%short = le %d, %back
	%add = where %short, %see, %finite
	%s3 = matmul %q, %k {tb=1}
	%t3 = add %s3, %add
	%p3 = softmax %t3 {axis=3}
	%o3 output = matmul %p3, %k
}
# expect:
# graph @f {
# 	input %q: f32[1,1,16,4]
# 	input %k: f32[1,1,12,4]
# 	const %zero: i64[] = {0}
# 	const %one: i64[] = {1}
# 	const %four: i64[] = {4}
# 	const %finite: f32[] = {-1e+09}
# 	const %see: f32[] = {0}
# 	const %r: i64[16,1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# 	const %c: i64[1,16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# 	const %d: i64[1,12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
# 	%next: i64[16,1] = add %r, %one
# 	%le: bool[16,16] = le %c, %next
# 	%o.reshape: bool[1,1,16,16] = reshape %le {shape=[1,1,16,16]}
# 	%o: f32[1,1,16,4] output, %o.lse: f32[1,1,16] = attention %q, %q, %q, %o.reshape
# 	%product: i64[16,16] = mul %r, %c
# 	%corner: bool[16,16] = eq %product, %zero
# 	%past: bool[16,16] = le %c, %r
# 	%odd: bool[16,16] = or %past, %corner
# 	%o2.reshape: bool[1,1,16,16] = reshape %odd {shape=[1,1,16,16]}
# 	%o2: f32[1,1,16,4] output, %o2.lse: f32[1,1,16] = attention %q, %q, %q, %o2.reshape {scale=2}
# 	%back: i64[16,1] = sub %r, %four
# 	%short: bool[16,12] = le %d, %back
# 	%add: f32[16,12] = where %short, %see, %finite
# 	%o3.reshape: f32[1,1,16,12] = reshape %add {shape=[1,1,16,12]}
# 	%o3: f32[1,1,16,4] output, %o3.lse: f32[1,1,16] = attention %q, %k, %k, %o3.reshape
# }
