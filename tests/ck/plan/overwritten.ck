# What forward overwrites, a node that overwrites it, and all else that this
# node makes are there once.
# run: --passes=plan --recompute-values b --optimizer none
# run: --passes=plan --recompute-values y --optimizer none
# run: --passes=plan --recompute-values mean --optimizer none
# error: matches only values that cannot be recomputed: they are outputs of the step, or their ops update state
graph @f {
	props upd fused
	input %x: f32[16,64] bytes 4096
	%b: f32[16,64] bytes 4096 = sin %x
	%y: f32[16,64] in %b, %mean: f32[64] bytes 256, %var: f32[64] bytes 256 = batchnorm %b
	%loss: f32[] output bytes 64 = reduce_sum %y {axes=[0,1], keepdims=0}
	%db: f32[16,64] bytes 4096 = softmax %y {axis=1} @backward
	%dx: f32[16,64] output bytes 4096 = batchnorm_grad %db, %y, %mean, %var @backward
	loss %loss
}
