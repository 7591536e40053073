# Products of integers and constants are in float32: positions of rotary
# embeddings.  Those of bools, of rows looked up and of weights are not.
# run: --passes=precision --dump=precision --dtype bf16
graph @f {
	props static canon loss
	input %pos: i64[1,8]
	input %keep: bool[8,1]
	param %w: f32[8,8]
	const %freq: f32[8,1] = splat 0.5
	const %rows: f32[9,8] = splat 0.5
	const %fixed: f32[8,8] = splat 0.25
	%p = cast %pos {to=f32}
	%angle = matmul %freq, %p
	%c = cos %angle
	%k = cast %keep {to=f32}
	%kept = matmul %k, %p
	%found = gather %rows, %pos
	%look = matmul %found, %fixed
	%learnt = matmul %w, %c
	%m = mul %kept, %learnt
	%n = mul %m, %look
	%loss: f32[] output = reduce_mean %n {axes=[0,1,2], keepdims=0}
	loss %loss
}
# check: # %angle f32 -> f32 product of integers, which 16 bits would round
# check: # %c f32 -> f32 cos of f32 operands
# check: # %kept f32 -> bf16 matmul computes in bf16
# check: # %look f32 -> bf16 matmul computes in bf16
# check: # %learnt f32 -> bf16 matmul computes in bf16
