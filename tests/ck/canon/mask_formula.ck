# Masks too large to be written out are recognised from what makes them: a
# causal one by any formula goes, a band stays as booleans computed once.
# run: --passes=fold,canon --fold-limit=100
graph @f {
	input %q: f32[2,2,16,4]
	input %pad: bool[2,1,1,16]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	const %n: i64[] = {16}
	const %wide: i64[] = {4}
	const %rows: i64[1] = {1}
	const %cols: i64[1] = {0}
	const %shape: i64[4] = {2,1,16,16}
	const %square: i64[2] = {16,16}
	const %yes: bool[] = {1}
	const %see: f32[] = {0}
	const %low: f32[] = {-inf}
	%i = range %zero, %n, %one
	%r = unsqueeze %i, %rows
	%c = unsqueeze %i, %cols
	%le = le %c, %r
	%all = expand %yes, %square
	%both = and %all, %le
	%each = expand %both, %shape
	%add = where %each, %see, %low
	%s = matmul %q, %q {tb=1}
	%t = add %s, %add
	%p = softmax %t {axis=3}
	%o = matmul %p, %q
	%i2 = range %zero, %n, %one
	%r2 = unsqueeze %i2, %rows
	%c2 = unsqueeze %i2, %cols
	%past = gt %c2, %r2
	%add2 = where %past, %low, %see
	%s2 = matmul %o, %o {tb=1}
	%t2 = add %s2, %add2
	%u2 = where %pad, %t2, %low
	%p2 = softmax %u2 {axis=3}
	%o2 = matmul %p2, %o
	%far = sub %r2, %c2
	%near = lt %far, %wide
	%band = and %le, %near
	%s3 = matmul %o2, %o2 {tb=1}
	%t3 = where %band, %s3, %low
	%p3 = softmax %t3 {axis=3}
	%o3 = matmul %p3, %o2
	%s4 = matmul %o3, %o3 {tb=1}
	%t4 = where %band, %s4, %low
	%p4 = softmax %t4 {axis=3}
	%o4 output = matmul %p4, %o3
}
# expect:
# graph @f {
# 	input %q: f32[2,2,16,4]
# 	input %pad: bool[2,1,1,16]
# 	const %wide: i64[] = {4}
# 	const %r: i64[16,1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# 	const %c: i64[1,16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# 	%le: bool[16,16] = le %c, %r
# 	%o: f32[2,2,16,4], %o.lse: f32[2,2,16] = attention %q, %q, %q {causal=1}
# 	%o2: f32[2,2,16,4], %o2.lse: f32[2,2,16] = attention %o, %o, %o, %pad {causal=1}
# 	%far: i64[16,16] = sub %r, %c
# 	%near: bool[16,16] = lt %far, %wide
# 	%band: bool[16,16] = and %le, %near
# 	%o3.reshape: bool[1,1,16,16] = reshape %band {shape=[1,1,16,16]}
# 	%o3: f32[2,2,16,4], %o3.lse: f32[2,2,16] = attention %o2, %o2, %o2, %o3.reshape
# 	%o4: f32[2,2,16,4] output, %o4.lse: f32[2,2,16] = attention %o3, %o3, %o3, %o3.reshape
# }
