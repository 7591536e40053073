# A replica has a part of the matrices; nothing else may read them.
# run: --passes=replicate,experts --dp 2 --ep 2
# error: reads 'w', matrices of experts, of which a replica has a part
graph @f {
	input %x: f32[3,4]
	input %i: i64[3]
	param %w: f32[6,4,8]
	%u = expert_matmul %x, %w, %i
	%v = mul %w, %w
	%p = reduce_mean %v {axes=[0,1,2], keepdims=0}
	%s = mul %u, %u
	%t = reduce_mean %s {axes=[0,1], keepdims=0}
	%loss output = add %t, %p
	loss %loss
}
