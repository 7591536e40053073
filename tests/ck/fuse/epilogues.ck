# Products of 16 bits end with GELU's gradient and with the sums that are
# gradients of biases; the earlier of a sum and its product gives the place, so
# that an update right behind the sum finds it.
# run: --target=cuda --passes=fuse
# check: %dw2: bf16[8,4] output, %db2: bf16[4] = matmul_end %a, %dy {ta=1, end=2} @backward
# check: %d: bf16[16,8], %db: bf16[8] output = matmul_end %dy, %w, _, %t25 {tb=1, end=3} @backward
# check: %du: bf16[2,8,8] = reshape %d
# check: %dw1: bf16[8,6] output, %db1: bf16[8] output = matmul_end %z, %v {ta=1} @backward
# check: %dw0: bf16[6,5] output, %db0: bf16[5] output = matmul_end %v, %t, %so {ta=1, end=2} @backward
# check-not: reduce_sum
graph @f {
	param %b: bf16[4]
	input %dy: bf16[16,4]
	input %w: bf16[8,4]
	input %a: bf16[16,8]
	input %x: bf16[2,8,8]
	input %z: bf16[16,8]
	input %v: bf16[16,6]
	input %t: bf16[16,5]
	input %s: bf16[6,5]
	%db2 = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%new = sgd %b, %db2 @backward
	%dw2 output = matmul %a, %dy {ta=1} @backward
	%d = matmul %dy, %w {tb=1} @backward
	%dr = reshape %d {shape=[2,8,8]} @backward
	%du = gelu_grad %x, %dr {tanh=1} @backward
	%db output = reduce_sum %du {axes=[0,1], keepdims=0} @backward
	%y output = neg %du @backward
	%dw1 output = matmul %z, %v {ta=1} @backward
	%zr = reshape %z {shape=[4,4,8]} @backward
	%db1 output = reduce_sum %zr {axes=[0,1], keepdims=0} @backward
	%so = softmax %s @backward
	%p0 = matmul %v, %t {ta=1} @backward
	%dw0 output = add %so, %p0 @backward
	%db0 output = reduce_sum %t {axes=[0], keepdims=0} @backward
}
