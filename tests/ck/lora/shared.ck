# What a gather reads, too, cannot be merged.
# run: --passes=lora --lora *=2
# error: --lora '*' matches no weight that only matrix products use
graph @f {
	input %i: i64[5]
	param %e: f32[7,4] = splat 1
	props static canon
	%x = gather %e, %i
	%z = matmul %x, %e {tb=1}
	%loss: f32[] output = reduce_mean %z {axes=[0,1], keepdims=0}
}
