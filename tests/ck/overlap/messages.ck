# Neighbouring gathers begin together, and so do neighbouring sums of shards: casts before them, and what adds the sums
# up behind them.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 4 exactly
	props canon loss bwd upd fused
	input %x: f32[16,16]
	param %u: f32[16,16]
	param %v: f32[1,64] shard [16,16]
	param %w: f32[1,64] shard [16,16]
	param %p: f32[1,64] shard [16,16]
	param %q: f32[1,64] shard [16,16]
	%a: f32[16,16] = matmul %x, %u
	%v.piece: bf16[1,64] shard [16,16] = cast %v {to=bf16}
	%v.whole: bf16[16,16] = gather_pieces %v.piece {axis=1, segment=[256], shape=[16,16]}
	%v.wide: f32[16,16] = cast %v.whole {to=f32}
	%b: f32[16,16] = mul %a, %v.wide
	%w.piece: bf16[1,64] shard [16,16] = cast %w {to=bf16}
	%w.whole: bf16[16,16] = gather_pieces %w.piece {axis=1, segment=[256], shape=[16,16]}
	%w.wide: f32[16,16] = cast %w.whole {to=f32}
	%c: f32[16,16] = mul %b, %w.wide
	%loss: f32[] output = reduce_sum %c {axes=[0,1], keepdims=0}
	%e: f32[16,16] = matmul %a, %x @backward
	%e.sum: f32[1,64] shard [16,16] = reduce_scatter %e {axis=1, segment=[256], group=1} @backward
	%p.new: f32[1,64] shard [16,16] = accumulate %p, %e.sum @backward
	%h: f32[16,16] = mul %e, %x @backward
	%h.sum: f32[1,64] shard [16,16] = reduce_scatter %h {axis=1, segment=[256], group=1} @backward
	%q.new: f32[1,64] shard [16,16] = accumulate %q, %h.sum @backward
	%i: f32[16,16] = matmul %h, %u @backward
	%j: f32[16,16] output = matmul %i, %u @backward
	loss %loss
}
# check: %v.piece: bf16[1,64] shard [16,16] bytes 128 = cast %v
# check: %w.piece: bf16[1,64] shard [16,16] bytes 128 = cast %w
# check: %v.whole: bf16[16,16] bytes 512 = gather_pieces %v.piece {axis=1, segment=[256], shape=[16,16]} wait %a
# check: %w.whole: bf16[16,16] bytes 512 = gather_pieces %w.piece {axis=1, segment=[256], shape=[16,16]} wait %b
# check: %a: f32[16,16] bytes 1024 = matmul %x, %u
# check: %v.wide: f32[16,16] bytes 1024 = cast %v.whole
# check: %b: f32[16,16] bytes 1024 = mul %a, %v.wide
# check: %w.wide: f32[16,16] bytes 1024 = cast %w.whole
# check: %c: f32[16,16] bytes 1024 = mul %b, %w.wide
# check: %e: f32[16,16] bytes 1024 = matmul %a, %x @backward
# check: %h: f32[16,16] bytes 1024 = mul %e, %x @backward
# check: %e.sum: f32[1,64] shard [16,16] bytes 256 = reduce_scatter %e {axis=1, segment=[256], group=1} @backward wait %j
# check: %h.sum: f32[1,64] shard [16,16] bytes 256 = reduce_scatter %h {axis=1, segment=[256], group=1} @backward wait %p.new
# check: %i: f32[16,16] bytes 1024 = matmul %h, %u @backward
# check: %j: f32[16,16] output bytes 1024 = matmul %i, %u @backward
# check: %p.new: f32[1,64] shard [16,16] bytes 256 = accumulate %p, %e.sum @backward
# check: %q.new: f32[1,64] shard [16,16] bytes 256 = accumulate %q, %h.sum @backward
