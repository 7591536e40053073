# A preset that does not fit is refused, not changed.
# run: --passes=layout,plan --memory-budget 1700B --recompute none
# error: memory budget 1700 B is too small for this --recompute; smallest budget that works with it: 2624 B
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,16]
	%a = softmax %x {axis=1}
	%b = softmax %a {axis=1}
	%loss output = reduce_sum %b {axes=[0,1], keepdims=0}
	%da: f32[8,16] = fill {shape=[8,16], value=1} @backward
	%db: f32[8,16] = softmax_grad %da, %b {axis=1} @backward
	%dx output = softmax_grad %db, %a {axis=1} @backward
	loss %loss
}
