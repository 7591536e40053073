graph @uneven {
	input %x: f32[6,10]
	param %w1: f32[10,9]
	param %b1: f32[9]
	param %w2: f32[9,10]
	param %b2: f32[10]
	%h: f32[6,9] = matmul %x, %w1, %b1
	%s: f32[6,9] = sigmoid %h
	%y: f32[6,10] = matmul %s, %w2, %b2
	%q: f32[6,10] = mul %y, %y
	%loss: f32[] output = reduce_sum %q {keepdims=0}
	loss %loss
}
