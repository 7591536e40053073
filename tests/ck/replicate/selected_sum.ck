# A sum of numbers of samples is another one in the whole batch.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %m: bool[4]
	input %x: f32[4,5]
	param %c: f32[5] = {1,2,3,4,5}
	const %i0: i64[] = {0}
	%nz = nonzero %m
	%s = reduce_sum %nz {axes=[0,1], keepdims=0}
	%ss = mul %s, %s
	%f = cast %ss {to=f32}
	%z = mul %x, %c
	%zs = reduce_sum %z {axes=[0,1], keepdims=0}
	%loss: f32[] output = mul %zs, %f
}
# error: cannot split the batch over replicas: 
