# A sample looks something up in its own row, and writes its own row: replicas
# number their rows from 0.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[3,5]
	param %w: f32[5]
	const %rows: i64[3,1] = {0, 1, 2}
	const %first: i64[3,2] = {0, 0, 1, 0, 2, 0}
	const %none: f32[3,5] = splat 0
	%y: f32[3,5] = mul %x, %w
	%j: i64[3,1] = argmax %x {axis=1}
	%at: i64[3,2] = concat %rows, %j {axis=1}
	%own: f32[3] = gather_nd %y, %at
	%set: f32[3,5] = scatter_nd %none, %first, %own
	%p: f32[3,5] = mul %set, %x
	%loss: f32[] output = reduce_sum %p {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
