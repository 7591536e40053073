# The sum of a gradient over replicas begins where the gradient is made, and ends before the first node that reads it, here
# the norm; the last one ends at once.
# run: --passes=layout,plan,overlap --optimizer none
graph @f {
	replicas 2
	props canon loss bwd upd fused
	input %x: f32[64,64]
	param %w: f32[64,64]
	param %v: f32[64,64]
	%y: f32[64,64] = matmul %x, %w
	%loss: f32[] output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dw: f32[64,64] = matmul %x, %y {ta=1} @backward
	%dv: f32[64,64] = matmul %y, %x {ta=1} @backward
	%sw: f32[64,64] param %w = all_reduce %dw {group=1} @update
	%sv: f32[64,64] param %v = all_reduce %dv {group=1} @update
	%n: f32[] = sum_squares %sw, %sv @update
	%w.new: f32[64,64] = sgd %w, %sw @update
	%v.new: f32[64,64] = sgd %v, %sv @update
	loss %loss
}
# check: %sw: f32[64,64] param %w bytes 16384 = all_reduce %dw {group=1} @update wait %sv
