# Replicas exchange their positions of all heads for all positions of their heads, and the results back.
# run: --passes=context --cp 2 --cp-dim ids=1 --cp-attention heads
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
# expect:
# graph @f {
# 	replicas 2 exactly
# 	context 2 zigzag
# 	input %ids: i64[3,8]
# 	param %w: f32[7,4]
# 	%t8: i64[3,4] = own %ids {axis=1, first_axis=1, segment=[4,4], mirror=1, from=1, group=7}
# 	%e: f32[3,4,4] = gather %w, %t8
# 	%r: f32[3,4,2,2] = reshape %e {shape=[3,4,2,2]}
# 	%t: f32[3,2,4,2] = transpose %r {perm=[0,2,1,3]}
# 	%t12: f32[3,1,8,2] = all_to_all %t {axis=2, first_axis=2, segment=[4,4], mirror=1, to_axis=1, to_first_axis=1, to_segment=[2], group=7}
# 	%t13: f32[3,1,8,2] = attention %t12, %t12, %t12 {causal=1, context=2, share_heads=1}
# 	%o: f32[3,2,4,2] = all_to_all %t13 {axis=1, first_axis=1, segment=[2], mirror=1, to_axis=2, to_first_axis=2, to_segment=[4,4], group=7}
# 	%t16: f32[] = reduce_mean %o {axes=[0,1,2,3], keepdims=0}
# 	%t17: f32[] = share
# 	%loss.part: f32[] = mul %t16, %t17
# 	%loss: f32[] output = all_reduce %loss.part {group=1}
# 	loss %loss
# }
