graph @uneven {
	input %x: f32[6,10]
	param %w1: f32[10,9]
	param %b1: f32[9]
	param %w2: f32[9,10]
	param %b2: f32[10]
	param %w3: f32[7,3,3]
	param %b3: f32[7]
	param %w4: f32[2,7,3]
	%h: f32[6,9] = matmul %x, %w1, %b1
	%s: f32[6,9] = sigmoid %h
	%y: f32[6,10] = matmul %s, %w2, %b2
	%i: f32[2,3,10] = reshape %y {shape=[2,3,10]}
	%c: f32[2,7,8] = conv %i, %w3, %b3
	%d: f32[2,7,8] = sigmoid %c
	%o: f32[2,2,6] = conv %d, %w4
	%q: f32[2,2,6] = mul %o, %o
	%loss: f32[] output = reduce_sum %q {keepdims=0}
	loss %loss
}
