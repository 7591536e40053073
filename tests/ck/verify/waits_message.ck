# Of gathers in one message none ends before all have begun.
# run: --passes=none
# error: node 2 (gather_pieces): the transfer ends after node 3, before node 4, the last of its message, begins
graph @f {
	replicas 2 exactly
	param %u: f32[1,8] shard [4,4]
	param %v: f32[1,8] shard [4,4]
	param %w: f32[1,8] shard [4,4]
	input %x: f32[4,4]
	%a: f32[4,4] = mul %x, %x
	%u.whole: f32[4,4] = gather_pieces %u {axis=1, segment=[16], shape=[4,4]} wait %v.whole
	%v.whole: f32[4,4] = gather_pieces %v {axis=1, segment=[16], shape=[4,4]} wait %b
	%w.whole: f32[4,4] = gather_pieces %w {axis=1, segment=[16], shape=[4,4]} wait %b
	%b: f32[4,4] = mul %a, %a
	%c: f32[4,4] output = mul %b, %w.whole
}
