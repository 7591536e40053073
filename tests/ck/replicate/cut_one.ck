# Nothing was added behind the only sample.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %x: f32[1,4,5]
	input %m: bool[1,4]
	param %c: f32[5] = {1,2,3,4,5}
	const %four: i64[2] = {4,5}
	%z0 = mul %x, %c
	%z = reshape %z0 {shape=[4,5]}
	%mm = reshape %m {shape=[4]}
	%nz, %cnt = selected %mm {compact=0}
	%at = transpose %nz {perm=[1,0]}
	%u = tanh %z
	%y = scatter_nd %z, %at, %u
	%k: f32[3,5] = slice %y {start=[0,0], step=[1,1]}
	%q = tanh %k
	%qq = softmax %q {axis=1}
	%loss0: f32[3] = reduce_max %qq {axes=[1], keepdims=0}
	%w: f32[1,3] = reshape %loss0 {shape=[1,3]}
	%o: f32[1,3] output = tanh %w
	%loss: f32[] output = reduce_sum %c {axes=[0], keepdims=0}
}
# error: cannot split the batch over replicas: 
