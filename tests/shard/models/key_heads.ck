# Six heads over two key heads: two ranks or six can share them, three cannot.
graph @f {
	props static canon loss
	input %x: f32[4,48]
	param %wq: f32[48,48]
	param %wk: f32[48,16]
	param %wo: f32[48,48]
	%q0 = matmul %x, %wq
	%k0 = matmul %x, %wk
	%q1 = reshape %q0 {shape=[1,4,6,8]}
	%k1 = reshape %k0 {shape=[1,4,2,8]}
	%q = transpose %q1 {perm=[0,2,1,3]}
	%k = transpose %k1 {perm=[0,2,1,3]}
	%a, %lse = attention %q, %k, %k {scale=0.3}
	%t = transpose %a {perm=[0,2,1,3]}
	%r = reshape %t {shape=[4,48]}
	%o = matmul %r, %wo
	%sq = mul %o, %o
	%loss output = reduce_sum %sq {axes=[0,1], keepdims=0}
	loss %loss
}
