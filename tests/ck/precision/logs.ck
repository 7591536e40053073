# Logarithms are in float32, and so is what they are of, back to a sigmoid or
# softmax; what else reads that goes on in 16 bits.  --precision overrules it.
# run: --passes=precision --dump=precision --dtype bf16 --precision t=bf16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w: f32[8,8]
	const %one: f32[] = {1}
	const %eps: f32[] = {1e-8}
	%z = matmul %x, %w
	%p = sigmoid %z
	%n = sub %one, %p
	%ne = add %n, %eps
	%b = log %ne
	%gate = sigmoid %z
	%g = mul %gate, %z
	%r = relu %z
	%lr = log %r
	%t = tanh %z
	%tt = mul %t, %t
	%lt = log %tt
	%s1 = add %b, %g
	%s2 = add %s1, %lr
	%s3 = add %s2, %lt
	%loss: f32[] output = reduce_mean %s3 {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %p f32 -> f32 input of a logarithm, f32 like losses
# check: # %n f32 -> f32 input of a logarithm, f32 like losses
# check: # %ne f32 -> f32 input of a logarithm, f32 like losses
# check: # %b f32 -> f32 logarithm, f32 like losses
# check: # %gate f32 -> bf16 sigmoid of bf16 operands
# check: # %g f32 -> bf16 mul of bf16 operands
# check: # %r f32 -> bf16 relu of bf16 operands
# check: # %lr f32 -> f32 logarithm, f32 like losses
# check: # %t f32 -> bf16 --precision t=bf16
# check: # %tt f32 -> f32 input of a logarithm, f32 like losses
