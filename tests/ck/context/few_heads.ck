# A replica has at least one key head.
# run: --passes=context --cp 4 --cp-dim ids=1 --cp-attention heads
# error: --cp-attention heads: expected a number of query heads that 4 divides, found 2; try: --cp-attention auto
graph @f {
	input %ids: i64[3,8]
	param %w: f32[7,4]
	%e = gather %w, %ids
	%r = reshape %e {shape=[3,8,2,2]}
	%t = transpose %r {perm=[0,2,1,3]}
	%o, _ = attention %t, %t, %t {causal=1}
	%loss: f32[] output = reduce_mean %o {axes=[0,1,2,3], keepdims=0}
	loss %loss
}
