# Without a name of the dim ckc says how to give it.
# run: --passes=context --cp 2
# error: --cp 2: no dim of an input behind the first has a name, as that of positions would; try: --cp-dim ids=1
graph @f {
	input %ids: i64[1,4]
	param %w: f32[5,3]
	%x = gather %w, %ids
	%loss output = reduce_mean %x {axes=[0,1,2], keepdims=0}
	loss %loss
}
