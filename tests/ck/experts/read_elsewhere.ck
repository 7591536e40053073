# What another op than a product of experts reads comes back first: between the
# products, and where an op is not finite at zeros.
# run: --passes=replicate,experts --dp 2 --ep 2
graph @f {
	input %x: f32[3,4]
	input %i: i64[3]
	param %up: f32[6,4,8]
	param %down: f32[6,8,4]
	%u = expert_matmul %x, %up, %i
	%a = sqrt %u
	%d = expert_matmul %a, %down, %i
	%e = sigmoid %d
	%s = mul %e, %e
	%loss output = reduce_mean %s {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %u.rows: f32[6,8] = expert_matmul %x.rows, %up, %i.rows {all=6}
# check: %u: f32[3,8] = sum_rows %u.rows
# check: %a: f32[3,8] = sqrt %u
# check: %a.rows: f32[6,8] = gather_rows %a
# check: %d.rows: f32[6,4] = expert_matmul %a.rows, %down, %i.rows {all=6}
# check: %d: f32[3,4] = sum_rows %d.rows
# check: %e: f32[3,4] = sigmoid %d
