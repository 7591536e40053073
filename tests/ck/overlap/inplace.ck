# What is sent is not overwritten before it has arrived, by the last node that reads it either; what comes behind may be.
# run: --passes=layout,plan,inplace --optimizer none
graph @f {
	replicas 2
	props canon loss bwd upd fused
	input %x: f32[64]
	%a: f32[64] = softmax %x {axis=0}
	%y: f32[64] = all_reduce %a {group=1} wait %b
	%b: f32[64] = loop %a [
		t0: f32 = exp a0
		give t0
	]
	%c: f32[64] = loop %y, %b [
		t0: f32 = add a0, a1
		give t0
	]
	%loss: f32[] output = reduce_sum %c {axes=[0], keepdims=0}
	loss %loss
}
# check: %b: f32[64] bytes 256 = loop %a
# check: %c: f32[64] in %y = loop %y, %b
