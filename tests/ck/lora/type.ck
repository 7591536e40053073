# Weights of 16 bits.
# run: --passes=lora --lora w=2
# error: --lora: expected 'w' in f32, found bf16
graph @f {
	input %x: bf16[5,3]
	param %w: bf16[3,4] = splat 1
	props static canon
	%z: bf16[5,4] output = matmul %x, %w
}
