# An adjoint that ranks hold summands of is shielded as summands.
# run: --passes=bind,fold,canon,loss,shard,autodiff --tp=2 --shard w=R
# check: = shield
# check: @backward
graph @f {
	input %x: f32[4,8]
	const %z: f32[] = {0}
	param %n: f32[8] = splat 1
	param %a: f32[8,64] = splat 0.5
	param %b: f32[64,8] = splat 0.25
	%h = mul %x, %n
	%c = gt %h, %z
	%r = sqrt %h
	%w = where %c, %r, %z
	%u = matmul %w, %a
	%t = tanh %u
	%v = matmul %t, %b
	%s = mul %v, %v
	%loss: f32[] output = reduce_mean %s {axes=[0,1], keepdims=0}
}
