# Two names may be that of positions.
# run: --passes=context --cp 2
# error: --cp 2: dims 'seq' and 'classes' of inputs may be that of positions; try: --cp-dim ids=1
graph @f {
	input %ids: i64[batch=1,seq=4]
	input %y: f32[batch=1,classes=3]
	param %w: f32[5,3]
	%x = gather %w, %ids
	%m = reduce_mean %x {axes=[1], keepdims=0}
	%z = mul %m, %y
	%loss output = reduce_mean %z {axes=[0,1], keepdims=0}
	loss %loss
}
