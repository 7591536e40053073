# Ops that change nothing go; a graph output keeps its name.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	%y: f32[2,3] output = neg %x
# }
graph @f {
	input %x: f32[2,3]
	const %one: f32[1,3] = splat 1
	const %nought: f32[] = {0}
	const %minus: f32[] = {-0}
	const %ratio: f32[] = {0.5}
	const %off: bool[] = {0}
	const %shape: i64[2] = {2,3}
	%a = neg %x
	%b = identity %a
	%c = mul %b, %one
	%d = sub %c, %nought
	%e = add %d, %minus
	%f = dropout %e, %ratio, %off
	%g = cast %f {to=1}
	%h = reshape %g, %shape
	%i = expand %h, %shape
	%j = transpose %i {perm=[0,1]}
	%k = pow %j, %one
	%y output = div %k, %one
}
