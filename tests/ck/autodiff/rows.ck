# Adjoints of rows that replicas exchange.
# run: --passes=autodiff
graph @f {
	replicas 2 exactly
	input %i: i64[3]
	param %p: f32[3,4]
	param %w: f32[2,4,5] shard [4,4,5] rows
	%x: f32[6,4] = gather_rows %p
	%k: i64[6] = gather_rows %i
	%u: f32[6,5] = expert_matmul %x, %w, %k {all=4}
	%y: f32[3,5] = sum_rows %u
	%loss output = reduce_mean %y {keepdims=0}
	loss %loss
}
# check: %d.u: f32[6,5] adjoint %u = gather_rows %d.y @backward
# check: %d.w: f32[2,4,5] param %w adjoint %w = expert_dw %x, %d.u, %k {experts=2, all=4}
# check: %d.x: f32[6,4] adjoint %x = expert_matmul %d.u, %w, %k {tb=1, all=4}
# check: %d.p: f32[3,4] param %p adjoint %p = sum_rows %d.x
