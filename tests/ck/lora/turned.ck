# Merged, a weight that is read both ways would be another one in each.
# run: --passes=lora --lora *=2
# error: --lora '*' matches no weight that only matrix products use, in one orientation
graph @f {
	input %x: f32[5,4]
	param %w: f32[4,4] = splat 1
	props static canon
	%h = matmul %x, %w
	%z = matmul %h, %w {tb=1}
	%loss: f32[] output = reduce_mean %z {axes=[0,1], keepdims=0}
}
