# Of a key head that all ranks share, picked by a batch of one: its gradient is put together along another dim than it is called cut in.
# run: --passes=autodiff
# expect:
# graph @f {
# 	ranks 3
# 	param %x: f32[5,1,2,4]
# 	param %q: f32[1,1,2,4] placement 1 [3]
# 	const %t16: f32[] = {0}
# 	%x.r: f32[5,1,2,4] placement replicate_partial = replicate %x
# 	%own: f32[5,1,2,4] placement 1 [1] replication 3 = own %x.r {axis=1, first_axis=1, replication=3, segment=[1], from=1}
# 	%k: f32[1,1,2,4] placement 0 [1] replication 3 = slice %own {start=[3,0,0,0], step=[1,1,1,1]}
# 	%v: f32[1,1,2,4] placement 0 [1] replication 3 = slice %own {start=[4,0,0,0], step=[1,1,1,1]}
# 	%y: f32[1,1,2,4] placement 1 [3], %y.lse: f32[1,1,2] placement 1 [3] = attention %q, %k, %v {scale=0.5}
# 	%s: f32[] placement partial = reduce_sum %y {keepdims=0}
# 	%loss: f32[] output = all_reduce %s
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.y: f32[1,1,2,4] adjoint %y placement 1 [3] = expand %d.loss {shape=[1,1,2,4]} @backward
# 	%d.q: f32[1,1,2,4] param %q adjoint %q placement 1 [3], %d.k: f32[1,1,2,4] adjoint %k placement 0 [1] replication 3, %d.v: f32[1,1,2,4] adjoint %v placement 0 [1] replication 3 = attention_grad %d.y, %q, %k, %v, %y, %y.lse {scale=0.5} @backward
# 	%t17: f32[3,1,2,4] = expand %t16 {shape=[3,1,2,4]} @backward
# 	%d.own: f32[5,1,2,4] adjoint %own placement 1 [1] replication 3 = concat %t17, %d.k, %d.v @backward
# 	%d.x.r: f32[5,1,2,4] adjoint %x.r placement partial = own_grad %d.own {axis=1, first_axis=1, replication=3, segment=[1]} @backward
# 	%d.x: f32[5,1,2,4] param %x adjoint %x = all_reduce %d.x.r @backward
# 	loss %loss
# }
graph @f {
	ranks 3
	props canon loss
	param %x: f32[5,1,2,4]
	param %q: f32[1,1,2,4] placement 1 [3]
	%x.r: f32[5,1,2,4] placement replicate_partial = replicate %x
	%own: f32[5,1,2,4] placement 1 [1] replication 3 = own %x.r {axis=1, first_axis=1, replication=3, segment=[1], from=1}
	%k: f32[1,1,2,4] placement 0 [1] replication 3 = slice %own {start=[3,0,0,0], step=[1,1,1,1]}
	%v: f32[1,1,2,4] placement 0 [1] replication 3 = slice %own {start=[4,0,0,0], step=[1,1,1,1]}
	%y: f32[1,1,2,4] placement 1 [3], %y.lse: f32[1,1,2] placement 1 [3] = attention %q, %k, %v {scale=0.5}
	%s: f32[] placement partial = reduce_sum %y {keepdims=0}
	%loss: f32[] output = all_reduce %s
	loss %loss
}
