# Numbers of samples times a row's length plus a place in it; what does not
# count is written to a row more, which is cut off again.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,3]
	input %n: bool[4,3]
	param %w: f32[12,1]
	const %none: f32[5,1] = splat 0
	const %three: i64[] = {3}
	const %beyond: i64[1] = {4}
	%m: bool[3,4] = transpose %n {perm=[1,0]}
	%at: i64[2,12], %count: i64[] = selected %m {compact=0}
	%c: i64[1,12] = slice %at {start=[0,0], step=[1,1]}
	%b: i64[1,12] = slice %at {start=[1,0], step=[1,1]}
	%b3: i64[1,12] = mul %b, %three
	%f0: i64[1,12] = add %b3, %c
	%f: i64[12] = reshape %f0 {shape=[12]}
	%flat: f32[12,1] = reshape %x {shape=[12,1]}
	%g: f32[12,1] = gather %flat, %f {axis=0}
	%y: f32[12,1] = tanh %g
	%v: bool[12,1] = reshape %m {shape=[12,1]}
	%row: i64[12,1] = reshape %b {shape=[12,1]}
	%to: i64[12,1] = where %v, %row, %beyond
	%p: f32[5,1] = scatter_elements %none, %to, %y {axis=0}
	%s: f32[4,1] = slice %p {start=[0,0], step=[1,1]}
	%wy: f32[] = reduce_sum %w {axes=[0,1], keepdims=0}
	%z: f32[4,1] = mul %s, %wy
	%loss: f32[] output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
