# Of a key head that all ranks share, picked by a batch of one: its gradient is put together along another dim than it is called cut in.
# run: --passes=autodiff
# expect:
# graph @f {
# 	ranks 3
# 	param %x: f32[5,1,2,4]
# 	param %q: f32[1,1,2,4] split 1 [3]
# 	const %t16: f32[] = {0}
# 	%x.r: f32[5,1,2,4] split r = replicate %x
# 	%own: f32[5,1,2,4] split 1 [1] shared 3 = own %x.r {axis=1, lead=1, shared=3, part=[1], from=1}
# 	%k: f32[1,1,2,4] split 0 [1] shared 3 = slice %own {start=[3,0,0,0], step=[1,1,1,1]}
# 	%v: f32[1,1,2,4] split 0 [1] shared 3 = slice %own {start=[4,0,0,0], step=[1,1,1,1]}
# 	%y: f32[1,1,2,4] split 1 [3], %y.lse: f32[1,1,2] split 1 [3] = attention %q, %k, %v {scale=0.5}
# 	%s: f32[] split p = reduce_sum %y {keepdims=0}
# 	%loss: f32[] output = all_reduce %s
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.y: f32[1,1,2,4] adjoint %y split 1 [3] = expand %d.loss {shape=[1,1,2,4]} @backward
# 	%d.q: f32[1,1,2,4] param %q adjoint %q split 1 [3], %d.k: f32[1,1,2,4] adjoint %k split 0 [1] shared 3, %d.v: f32[1,1,2,4] adjoint %v split 0 [1] shared 3 = attention_grad %d.y, %q, %k, %v, %y, %y.lse {scale=0.5} @backward
# 	%t17: f32[3,1,2,4] = expand %t16 {shape=[3,1,2,4]} @backward
# 	%d.own: f32[5,1,2,4] adjoint %own split 1 [1] shared 3 = concat %t17, %d.k, %d.v @backward
# 	%d.x.r: f32[5,1,2,4] adjoint %x.r split p = own_grad %d.own {axis=1, lead=1, shared=3, part=[1]} @backward
# 	%d.x: f32[5,1,2,4] param %x adjoint %x = all_reduce %d.x.r @backward
# 	loss %loss
# }
graph @f {
	ranks 3
	props canon loss
	param %x: f32[5,1,2,4]
	param %q: f32[1,1,2,4] split 1 [3]
	%x.r: f32[5,1,2,4] split r = replicate %x
	%own: f32[5,1,2,4] split 1 [1] shared 3 = own %x.r {axis=1, lead=1, shared=3, part=[1], from=1}
	%k: f32[1,1,2,4] split 0 [1] shared 3 = slice %own {start=[3,0,0,0], step=[1,1,1,1]}
	%v: f32[1,1,2,4] split 0 [1] shared 3 = slice %own {start=[4,0,0,0], step=[1,1,1,1]}
	%y: f32[1,1,2,4] split 1 [3], %y.lse: f32[1,1,2] split 1 [3] = attention %q, %k, %v {scale=0.5}
	%s: f32[] split p = reduce_sum %y {keepdims=0}
	%loss: f32[] output = all_reduce %s
	loss %loss
}
