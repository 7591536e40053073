# Tokens of all replicas go to a replica's experts: before they are repeated for
# their choices; biases are selected anew.  Sums over choices come back.
# run: --passes=replicate,experts --dp 4 --ep 2
graph @f {
	input %x: f32[3,4]
	input %i: i64[3,2]
	input %q: f32[3,2]
	param %up: f32[6,4,8]
	param %bias: f32[6,8]
	param %down: f32[6,8,4]
	%x1 = reshape %x {shape=[3,1,4]}
	%x2 = expand %x1 {shape=[3,2,4]}
	%x3 = reshape %x2 {shape=[6,4]}
	%k = reshape %i {shape=[6]}
	%u = expert_matmul %x3, %up, %k
	%b = gather %bias, %k {axis=0}
	%h = add %u, %b
	%a = sigmoid %h
	%d = expert_matmul %a, %down, %k
	%w = reshape %q {shape=[6,1]}
	%m = mul %d, %w
	%n = reshape %m {shape=[3,2,4]}
	%y = reduce_sum %n {axes=[1], keepdims=0}
	%z = add %x, %y
	%s = mul %z, %z
	%loss output = reduce_mean %s {axes=[0,1], keepdims=0}
	loss %loss
}
# check: expert_group 2
# check: param %up: f32[3,4,8] shard [6,4,8] rows
# check: param %bias: f32[3,8] shard [6,8] rows
# check: %x.rows: f32[6,4] = gather_rows %x {group=4}
# check: %x2.rows: f32[6,2,4] = expand %x1.rows
# check: %i.rows: i64[6,2] = gather_rows %i {group=4}
# check: %u.rows: f32[12,8] = expert_matmul %x3.rows, %up, %k.rows {all=6}
# check: %b.rows: f32[12,8] = gather %bias, %k.rows {all=6}
# check: %h.rows: f32[12,8] = add %u.rows, %b.rows
# check: %a.rows: f32[12,8] = sigmoid %h.rows
# check: %d.rows: f32[12,4] = expert_matmul %a.rows, %down, %k.rows {all=6}
# check: %q.rows: f32[6,2] = gather_rows %q {group=4}
# check: %m.rows: f32[12,4] = mul %d.rows, %w.rows
# check: %y.rows: f32[6,4] = reduce_sum %n.rows {axes=[1], keepdims=0}
# check: %y: f32[3,4] = sum_rows %y.rows {group=4}
# check: %z: f32[3,4] = add %x, %y
# check-count: 3 gather_rows %
# check-count: 1 sum_rows %
