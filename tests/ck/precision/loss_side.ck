# Behind the last product float32 wins where 16 bits meet it, and a float32 input
# is float32, such as the target of a mixture of densities.  Before a product
# neither holds, nor of what the loss does not read.
# run: --passes=precision --dump=precision --dtype bf16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	input %t: f32[4,8]
	param %w: f32[8,8]
	const %half: f32[] = {0.5}
	%h = matmul %x, %w
	%early = sub %t, %h
	%z = matmul %early, %w
	%s = mul %t, %half
	%d = sub %s, %z
	%e = exp %z
	%q = mul %d, %e
	%lp = log_softmax %z
	%m = sub %lp, %z
	%c = mul %z, %half
	%a = add %q, %m
	%b = add %a, %c
	%other: f32[4,8] output = sub %t, %z
	%loss: f32[] output = reduce_mean %b {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %early f32 -> bf16 sub of bf16 operands
# check: # %s f32 -> f32 mul of f32 operands
# check: # %d f32 -> f32 sub of bf16 and f32, which the loss reads
# check: # %e f32 -> bf16 exp of bf16 operands
# check: # %q f32 -> f32 mul of bf16 and f32, which the loss reads
# check: # %m f32 -> f32 sub of bf16 and f32, which the loss reads
# check: # %c f32 -> bf16 mul of bf16 operands
# check: # %a f32 -> f32 add of f32 operands
# check: # %b f32 -> f32 add of bf16 and f32, which the loss reads
# check: # %other f32 -> bf16 sub of bf16 operands
