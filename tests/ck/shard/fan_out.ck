# Three products read one value: one replicate, so that backward adds their
# gradients up before they travel, in one sum.
# run: --passes=shard,autodiff --tp=2 --shard=xe=I --quiet
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %e: f32[8]
	param %wq: f32[8,64]
	param %wk: f32[8,64]
	param %wv: f32[8,64]
	param %wo: f32[64,8]
	%xe = mul %x, %e
	%q = matmul %xe, %wq
	%k = matmul %xe, %wk
	%v = matmul %xe, %wv
	%qk = mul %q, %k
	%a = mul %qk, %v
	%o = matmul %a, %wo
	%loss output = reduce_sum %o {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %xe.replicate: f32[4,8] placement replicate_partial = replicate %xe
# check: %d.xe.replicate: f32[4,8] adjoint %xe.replicate placement partial = matmul
# check: %d.xe: f32[4,8] adjoint %xe = all_reduce %d.xe.replicate
# check-count: 1 = replicate
# check-count: 2 = all_reduce
