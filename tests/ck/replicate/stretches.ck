# Rows of a sequence that has time first hold the samples in as many stretches
# as there are steps; words of dropout go by their place in the whole batch.
# run: --passes=replicate --dp=auto
graph @f {
	props static canon loss
	input %x: f32[4,12,8]
	param %w: f32[8,8]
	%t: f32[12,4,8] = transpose %x {perm=[1,0,2]}
	%r: f32[48,8] = reshape %t {shape=[48,8]}
	%h: f32[48,8] = matmul %r, %w
	%d: f32[48,8] = dropout %h {ratio=0.4, stream=1}
	%s: f32[12,4,8] = reshape %d {shape=[12,4,8]}
	%step: f32[1,4,8] = slice %s {start=[3,0,0], step=[1,1,1]}
	%loss: f32[] output = reduce_sum %step {axes=[0,1,2], keepdims=0}
	loss %loss
}
# check: dropout %h {ratio=0.4, stream=1, batch_segments=12}
# check: %loss: f32[] output = all_reduce %loss.part {group=1}
# check-count: 1 all_reduce
