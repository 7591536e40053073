# Nor may a softmax run over positions.
# run: --passes=context --cp 2 --cp-dim x=1
# error: operand 0, f32[2,4], has positions along dim 1; expected an op that treats positions independently, attention, or a sum or mean over positions; leave out --cp
graph @f {
	input %x: f32[2,4]
	param %s: f32[1,1]
	%y = mul %x, %s
	%p = softmax %y {axis=1}
	%q = mul %p, %p
	%loss output = reduce_mean %q {axes=[0,1], keepdims=0}
	loss %loss
}
