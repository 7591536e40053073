# Nothing ends a product whose operands are float32, whose result others read,
# whose rows the library could not read, before an operand is there; nor exact
# GELU.
# run: --target=cuda --passes=fuse
# check-not: matmul_
# check: %d1: bf16[16,8] = matmul
# check: %late: bf16[4] output = reduce_sum
graph @f {
	input %dy: bf16[16,4]
	input %w: bf16[8,4]
	input %w6: bf16[6,4]
	input %x: bf16[16,8]
	input %x6: bf16[16,6]
	input %f: f32[16,4]
	input %a: f32[16,8]
	%d1 = matmul %dy, %w {tb=1} @backward
	%exact output = gelu_grad %x, %d1 @backward
	%d2 = matmul %dy, %w {tb=1} @backward
	%read output = gelu_grad %x, %d2 {tanh=1} @backward
	%too output = neg %d2 @backward
	%d3 = matmul %dy, %w6 {tb=1} @backward
	%six output = gelu_grad %x6, %d3 {tanh=1} @backward
	%b output = reduce_sum %f {axes=[0], keepdims=0} @backward
	%dw output = matmul %a, %f {ta=1} @backward
	%late output = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%s = softmax %x @backward
	%dws output = matmul %s, %dy {ta=1} @backward
	%rows output = reduce_sum %x {axes=[1], keepdims=0} @backward
	%dwr output = matmul %x, %s {ta=1} @backward
}
