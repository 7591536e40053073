# The number of a sample picks within its own row.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %m: bool[4]
	input %x: f32[4,9]
	param %c: f32[9] = {1,2,3,4,5,6,7,8,9}
	const %none: i64[4] = splat 0
	const %all: i64[1] = {-1}
	%nz = nonzero %m
	%at = transpose %nz {perm=[1,0]}
	%r = reshape %nz, %all
	%o = scatter_nd %none, %at, %r
	%o1 = reshape %o {shape=[4,1]}
	%z = mul %x, %c
	%u = gather_nd %z, %o1 {batch=1}
	%loss: f32[] output = reduce_sum %u {axes=[0], keepdims=0}
}
# error: cannot split the batch over replicas: 
