# What one loop of backward reads of other loops it computes itself, and of a
# chain of them the whole chain: nothing is stored.  A value with two readers
# gets a copy.
# run: --passes=layout,plan --recompute-values s --recompute-values t --recompute-values u --optimizer none
graph @f {
	props bound static canon loss bwd upd fused
	input %x: f32[8,64]
	param %w: f32[64,64]
	%p = matmul %x, %w
	%s = loop %p [t0 = sigmoid a0; give t0]
	%t = loop %s, %x [t0 = mul a0, a1; give t0]
	%u = loop %p [t0 = tanh a0; give t0]
	%y = matmul %t, %u {tb=1}
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[8,8] = fill {shape=[8,8], value=1} @backward
	%dt = matmul %dy, %u @backward
	%du = matmul %dy, %x {ta=1} @backward
	%dq = loop %dt, %t, %p [t0 = mul a0, a1; t1 = mul t0, a2; give t1] @backward
	%dp = loop %dq, %u, %du [t0 = mul a0, a1; t1 = add t0, a2; give t1] @backward
	%dw output param %w = matmul %x, %dp {ta=1} @backward
	loss %loss
}
# check-count: 1 @recompute
# check: %u.again: f32[8,64] of %u
# check: = loop %dt, %p, %x @backward inlines %s, %t [
# check: t0: f32 = sigmoid a1
# check: t1: f32 = mul t0, a2
# check: t2: f32 = mul a0, t1
# check: t3: f32 = mul t2, a1
# check: %dp: f32[8,64] bytes 2048 = loop %dq, %u.again, %du @backward [
