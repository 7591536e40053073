# A constant of columns is none of samples.
# run: --passes=fold,canon,replicate --dp=auto
graph @g {
	input %x: f32[3,3]
	input %t: f32[3,3]
	param %c: f32[3] = {1,2,3}
	const %n: i64[3] = {0,1,2}
	const %b: i64[] = {3}
	const %half: f32[] = {0.5}
	%z = mul %x, %c
	%m = gt %t, %half
	%i = where %m, %n, %b
	%p = pad %z {begin=[0,0], end=[1,0]}
	%y = scatter_elements %p, %i, %t {axis=0}
	%k: f32[3,3] = slice %y {start=[0,0], step=[1,1]}
	%q = mul %k, %k
	%loss: f32[] output = reduce_sum %q {axes=[0,1], keepdims=0}
}
# error: cannot split the batch over replicas: 
