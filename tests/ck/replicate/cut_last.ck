# The last row that samples wrote is cut off: it is a sample.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %x: f32[4,5]
	input %t: f32[4,5]
	param %c: f32[5] = {1,2,3,4,5}
	const %rows: i64[4,1] = {0,1,2,3}
	%j = argmax %t {axis=1}
	%at = concat %rows, %j {axis=1}
	%z = add %x, %c
	%u: f32[4] = gather_nd %z, %at
	%uu = mul %u, %u
	%y = scatter_nd %z, %at, %uu
	%k: f32[3,5] = slice %y {start=[0,0], step=[1,1]}
	%q = mul %k, %k
	%loss: f32[] output = reduce_sum %q {axes=[0,1], keepdims=0}
}
# error: cannot split the batch over replicas: 
