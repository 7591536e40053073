# A reshape between pieces of one shape that are cut along different dims, with two readers: each adjoint is cut as its
# value is, the sum of two included.
# run: --passes=autodiff
graph @f {
	ranks 2
	props canon loss
	param %x: f32[3,2,4]
	%x.r: f32[3,2,4] placement replicate_partial = replicate %x
	%own: f32[3,1,4] placement 1 [2] = own %x.r {axis=1, first_axis=1, segment=[2], from=1}
	%k: f32[1,1,4] placement 1 [2] = slice %own {start=[1,0,0], step=[1,1,1]}
	%v: f32[1,1,4] placement 1 [2] = slice %own {start=[2,0,0], step=[1,1,1]}
	%a: f32[1,1,4] placement 0 [2] = reshape %k {shape=[1,1,4]}
	%b: f32[1,1,4] placement 0 [2] = neg %a
	%c: f32[1,1,4] placement 0 [2] = mul %a, %b
	%d: f32[1,1,4] placement 0 [2] = reshape %v {shape=[1,1,4]}
	%y: f32[1,1,4] placement 0 [2] = mul %c, %d
	%s: f32[] placement partial = reduce_sum %y {keepdims=0}
	%loss: f32[] output = all_reduce %s
	loss %loss
}
# check: %d.v: f32[1,1,4] adjoint %v placement 1 [2] = reshape %d.d {shape=[1,1,4]}
# check: %d.a: f32[1,1,4] adjoint %a placement 0 [2] = add
# check: %d.k: f32[1,1,4] adjoint %k placement 1 [2] = reshape %d.a {shape=[1,1,4]}
# check: %d.own: f32[3,1,4] adjoint %own placement 1 [2] = concat
