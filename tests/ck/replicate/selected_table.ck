# Samples look up rows by their number in a table of all.
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
	%y: f32[12,2] = gather %table, %row {axis=0}
	%loss: f32[] output = reduce_sum %y {keepdims=0}
	loss %loss
}
# error: node 'y' (gather): cannot split the batch over replicas: it computes with sample indices
