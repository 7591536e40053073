# Something must be shared.
# run: --passes=context --cp 2 --cp-dim x=1
# error: --cp 2: no node has positions and parameters; leave out --cp
graph @f {
	input %x: f32[2,4]
	param %s: f32[3]
	%p = mul %x, %x
	%m = reduce_mean %p {axes=[0,1], keepdims=0}
	%q = mul %s, %s
	%n = reduce_mean %q {axes=[0], keepdims=0}
	%loss output = add %m, %n
	loss %loss
}
