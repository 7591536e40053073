# Rows of one stretch of samples beside samples in several.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %x: f32[3,2,5]
	input %t: f32[3,2,5]
	param %c: f32[5] = {1,2,3,4,5}
	const %rows: i64[6,1] = {0,1,2,3,4,5}
	%xx = reshape %x {shape=[6,5]}
	%z = add %xx, %c
	%tt = transpose %t {perm=[1,0,2]}
	%t6 = reshape %tt {shape=[6,5]}
	%j = argmax %t6 {axis=1}
	%at = concat %rows, %j {axis=1}
	%u: f32[6] = gather_nd %z, %at
	%t7 = reduce_sum %t6 {axes=[1], keepdims=0}
	%uu = mul %u, %t7
	%loss: f32[] output = reduce_sum %uu {axes=[0], keepdims=0}
}
# error: cannot split the batch over replicas: 
