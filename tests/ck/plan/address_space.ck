# A value for which a process has no addresses is refused by its node's name.
# run: --plan-only
# run: --plan-only --memory-budget 1GiB
# error: node 'c' (expand): f32[1000000,1000000,1000] takes 3638.0 TiB; a process can address 128 TiB
graph @f {
	input %x: f32[4]
	param %w: f32[4] = splat 1
	const %shape: i64[3] = {1000000,1000000,1000}
	%c = constant_of_shape %shape {value=3}
	%s = reduce_sum %c {axes=[0,1,2], keepdims=0}
	%m = mul %x, %w
	%y = mul %m, %s
	%loss: f32[] output = reduce_mean %y {axes=[0], keepdims=0}
	loss %loss
}
