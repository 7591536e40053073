# Biases that another op reads stay whole, and so do those of other indices.
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
	%z0 = add %x, %y
	%o = reduce_sum %bias {axes=[0,1]}
	%z = add %z0, %o
	%s = mul %z, %z
	%loss output = reduce_mean %s {axes=[0,1], keepdims=0}
	loss %loss
}
# check: param %up: f32[3,4,8] shard [6,4,8] rows
# check: param %bias: f32[6,8]
# check: %b.rows: f32[12,8] = gather %bias, %k.rows
# check-not: shard [6,8]
