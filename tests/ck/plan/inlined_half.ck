# 16-bit floats are rounded when they are stored, so that loops of them are
# copied, not taken in.
# run: --passes=layout,plan --recompute-values s --recompute-values t --recompute-values u --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: bf16[8,64]
	input %dy: bf16[8,8]
	param %w: bf16[64,64]
	%p = matmul %x, %w
	%s = loop %p [t0 = sigmoid a0; give t0]
	%t = loop %s, %x [t0 = mul a0, a1; give t0]
	%u = loop %p [t0 = tanh a0; give t0]
	%y = matmul %t, %u {tb=1}
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dt = matmul %dy, %u @backward
	%du = matmul %dy, %x {ta=1} @backward
	%dq = loop %dt, %t, %p [t0 = mul a0, a1; t1 = mul t0, a2; give t1] @backward
	%dp = loop %dq, %u, %du [t0 = mul a0, a1; t1 = add t0, a2; give t1] @backward
	%dw output param %w = matmul %x, %dp {ta=1} @backward
	loss %loss
}
# check-count: 3 @recompute
