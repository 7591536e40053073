# What a mask selects stays with its sample: rows that are looked up, written
# back, or added under the same indices are a replica's own, and what is
# selected is counted for the whole batch.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,3,5]
	input %m: bool[4,3]
	param %w: f32[5,5]
	const %none: f32[4,5] = splat 0
	const %zero: f32[] = {0}
	%at: i64[2,12], %count: i64[] = selected %m {compact=0}
	%i: i64[12,2] = transpose %at {perm=[1,0]}
	%g: f32[12,5] = gather_nd %x, %i
	%h: f32[12,5] = matmul %g, %w
	%c: bool[12,1] = reshape %m {shape=[12,1]}
	%k: f32[12,5] = where %c, %h, %zero
	%s: i64[12,1] = slice %i {start=[0,0], step=[1,1]}
	%r: i64[12,5] = expand %s {shape=[12,5]}
	%a: f32[4,5] = scatter_elements %none, %r, %k {axis=0, add=1}
	%q: f32[4,5] = mul %a, %a
	%t: f32[] = reduce_sum %q {axes=[0,1], keepdims=0}
	%n: f32[] = cast %count {to=f32}
	%loss: f32[] output = div %t, %n
	loss %loss
}
# check: %count: i64[] = selected
# check: %t20: f32[] = all_reduce %t {side=1, group=1}
# check: %t21: f32[] = all_reduce %n {side=1, group=1}
# check: %loss.part: f32[] = div %t20, %t21
# check-count: 3 all_reduce
