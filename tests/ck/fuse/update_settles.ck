# Running the loop again for %m reads %b too: b's update must wait for
# %dm, which it did not need to before %s and %m came from one loop.
# run: --passes=fuse,settle
# expect:
# graph @f {
# 	param %b: f32[4,4]
# 	param %c: f32[4,4]
# 	input %x: f32[4,4]
# 	%m: f32[4,4], %s: f32[4,4] = loop %c, %x, %b [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = sin t0
# 		t2: f32 = sub a2, t1
# 		give t0, t2
# 	]
# 	%loss: f32[] output = reduce_sum %s {axes=[0,1], keepdims=0}
# 	%ds: f32[4,4] = softmax %s @backward
# 	%db: f32[4,4] param %b = softmax %ds @backward
# 	%dm: f32[4,4] = softmax %m @backward
# 	%b.next: f32[4,4] = sgd %b, %db @update
# 	%dc: f32[4,4] param %c = matmul %dm, %db @backward
# 	%c.next: f32[4,4] = sgd %c, %dc @update
# 	loss %loss
# }
graph @f {
	param %b: f32[4,4]
	param %c: f32[4,4]
	input %x: f32[4,4]
	%m = mul %c, %x
	%n = sin %m
	%s = sub %b, %n
	%loss output = reduce_sum %s {axes=[0,1], keepdims=0}
	%ds = softmax %s @backward
	%db param %b = softmax %ds @backward
	%b.next = sgd %b, %db @update
	%dm = softmax %m @backward
	%dc param %c = matmul %dm, %db @backward
	%c.next = sgd %c, %dc @update
	loss %loss
}
