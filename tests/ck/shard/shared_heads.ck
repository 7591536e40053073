# Two key heads on four ranks: of a complete value two ranks take the same
# piece, and each has a summand of its gradient.
# run: --passes=shard,autodiff --tp=4 --shard=k=I --shard=v=I --shard=o=S1 --quiet
graph @f {
	props static canon loss
	input %x: f32[5,8]
	param %e: f32[8]
	param %wq: f32[8,64]
	param %wk: f32[8,32]
	param %wv: f32[8,32]
	param %wo: f32[64,8]
	%xe = mul %x, %e
	%q0 = matmul %xe, %wq
	%k0 = matmul %xe, %wk
	%v0 = matmul %xe, %wv
	%q1: f32[1,5,4,16] = reshape %q0 {shape=[1,5,4,16]}
	%q: f32[1,4,5,16] = transpose %q1 {perm=[0,2,1,3]}
	%k1: f32[1,5,2,16] = reshape %k0 {shape=[1,5,2,16]}
	%k: f32[1,2,5,16] = transpose %k1 {perm=[0,2,1,3]}
	%v1: f32[1,5,2,16] = reshape %v0 {shape=[1,5,2,16]}
	%v: f32[1,2,5,16] = transpose %v1 {perm=[0,2,1,3]}
	%o, %lse = attention %q, %k, %v {scale=0.25}
	%o1 = transpose %o {perm=[0,2,1,3]}
	%o2: f32[5,64] = reshape %o1 {shape=[5,64]}
	%y = matmul %o2, %wo
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %k.replicate: f32[1,2,5,16] placement replicate_partial = replicate %k
# check: %k.replicate.own: f32[1,1,5,16] placement 1 [2] replication 2 = own %k.replicate {axis=1, first_axis=1, replication=2, segment=[2], from=1}
# check: %d.k.replicate: f32[1,2,5,16] adjoint %k.replicate placement partial = own_grad
# check: %d.k: f32[1,2,5,16] adjoint %k = all_reduce %d.k.replicate
# check-count: 2 = own_grad
