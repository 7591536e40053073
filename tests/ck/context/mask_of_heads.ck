# Heads with masks of their own are not exchanged.
# run: --passes=context --cp 2 --cp-dim ids=1 --cp-attention heads
# error: --cp-attention heads: expected one mask for all heads; try: --cp-attention auto
graph @f {
	input %ids: i64[3,8]
	input %m: f32[1,2,8,8]
	param %w: f32[7,4]
	%e = gather %w, %ids
	%r = reshape %e {shape=[3,8,2,2]}
	%t = transpose %r {perm=[0,2,1,3]}
	%o, _ = attention %t, %t, %t, %m
	%loss: f32[] output = reduce_mean %o {axes=[0,1,2,3], keepdims=0}
	loss %loss
}
