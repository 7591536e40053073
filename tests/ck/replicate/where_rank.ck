# The samples lie in a dim that the constant does not have.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %x: f32[3,3]
	param %c: f32[3] = {1,2,3}
	param %k: f32[3,3] = {1,2,3,0,0,0,1,2,3}
	const %n: i64[3] = {0,1,2}
	const %b: i64[] = {3}
	const %half: f32[] = {0.5}
	%z0 = mul %x, %c
	%z = transpose %z0 {perm=[1,0]}
	%m = gt %k, %half
	%i = where %m, %n, %b
	%p = pad %z {begin=[0,0], end=[0,1]}
	%y = scatter_elements %p, %i, %z {axis=1}
	%kk: f32[3,3] = slice %y {start=[0,0], step=[1,1]}
	%q = mul %kk, %kk
	%loss: f32[] output = reduce_sum %q {axes=[0,1], keepdims=0}
}
# error: cannot split the batch over replicas: 
