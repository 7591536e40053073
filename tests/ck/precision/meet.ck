# Where narrow and full values meet: the residual stream stays narrow, a difference to a mean is full.
# run: --passes=precision --dtype bf16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	param %g: f32[8]
	%a = matmul %x, %w
	%mean = reduce_mean %a {axes=[1], keepdims=1}
	%d = sub %a, %mean
	%sq = mul %d, %d
	%var = reduce_mean %sq {axes=[1], keepdims=1}
	%n0 = div %d, %var
	%n = mul %n0, %g
	%o = matmul %n, %w
	%r = add %a, %o
	%q = add %r, %n
	%p = lt %q, %mean
	%s = where %p, %q, %r
	%z = matmul %s, %w
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %mean: f32[4,1] = reduce_mean
# check: %d: f32[4,8] = sub
# check: %n: f32[4,8] = mul %n0, %g
# check: %o: bf16[4,8] = matmul
# check: %r: bf16[4,8] = add %a, %o
# check: %q: bf16[4,8] = add %r
# check: f32[4,8] = cast %q
# check: %p: bool[4,8] = lt
# check: %s: bf16[4,8] = where %p, %q, %r
