# As update_settles: the average of %b waits with the update that it reads.
# run: --passes=fuse,settle
# check: %dm: f32[4,4] = softmax %m @backward
# check: %b.next: f32[4,4] = sgd %b, %db @update
# check: %ema.b.next: f32[4,4] = ema %ema.b, %b.next @update
graph @f {
	param %b: f32[4,4]
	param %c: f32[4,4]
	input %x: f32[4,4]
	state %ema.b: f32[4,4] param %b state ema
	%m = mul %c, %x
	%n = sin %m
	%s = sub %b, %n
	%loss output = reduce_sum %s {axes=[0,1], keepdims=0}
	%ds = softmax %s @backward
	%db param %b = softmax %ds @backward
	%b.next = sgd %b, %db @update
	%ema.b.next = ema %ema.b, %b.next @update
	%dm = softmax %m @backward
	%dc param %c = matmul %dm, %db @backward
	%c.next = sgd %c, %dc @update
	loss %loss
}
