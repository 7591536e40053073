# The number of a sample is another one in the whole batch.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,3]
	input %m: bool[4,3]
	param %w: f32[4]
	param %table: f32[8,2]
	const %none: f32[5] = splat 0
	const %beyond: i64[1] = {4}
	const %two: i64[] = {2}
	%at: i64[2,12], %count: i64[] = selected %m {compact=0}
	%i: i64[12,2] = transpose %at {perm=[1,0]}
	%s: i64[1,12] = slice %at {start=[0,0], step=[1,1]}
	%row: i64[12] = reshape %s {shape=[12]}
	%f: f32[12] = cast %row {to=f32}
	%w1: f32[] = reduce_sum %w {keepdims=0}
	%y: f32[12] = mul %f, %w1
	%loss: f32[] output = reduce_sum %y {keepdims=0}
	loss %loss
}
# error: node 'f' (cast): cannot split the batch over replicas: it computes with sample indices
