# Bags, one turn of a loop each, are one reduction.
# run: --passes=canon --dp 2
graph @f {
	input %x: f32[6,4]
	input %i: i64[6]
	param %w: f32[9,4]
	const %two: f32[] = {2}
	%s0: f32[2,4] = slice %x {start=[0,0], step=[1,1]}
	%s1: f32[2,4] = slice %x {start=[2,0], step=[1,1]}
	%s2: f32[2,4] = slice %x {start=[4,0], step=[1,1]}
	%a0 = reduce_mean %s0 {axes=[0]}
	%a1 = reduce_mean %s1 {axes=[0]}
	%t2 = reduce_sum %s2 {axes=[0]}
	%a2 = div %t2, %two
	%a output = concat %a0, %a1, %a2 {axis=0}
	%j0: i64[3] = slice %i {start=[0], step=[1]}
	%j1: i64[3] = slice %i {start=[3], step=[1]}
	%g0 = gather %w, %j0 {axis=0}
	%g1 = gather %w, %j1 {axis=0}
	%b0 = reduce_sum %g0 {axes=[0], keepdims=0}
	%b1 = reduce_sum %g1 {axes=[0], keepdims=0}
	%c0 = reshape %b0 {shape=[1,4]}
	%c1 = reshape %b1 {shape=[1,4]}
	%b output = concat %c0, %c1 {axis=0}
}
# expect:
# graph @f {
# 	input %x: f32[6,4]
# 	input %i: i64[6]
# 	param %w: f32[9,4]
# 	%a.reshape: f32[3,2,4] = reshape %x {shape=[3,2,4]}
# 	%a: f32[3,4] output = reduce_mean %a.reshape {axes=[1], keepdims=0}
# 	%b.reshape: i64[2,3] = reshape %i {shape=[2,3]}
# 	%b.gather: f32[2,3,4] = gather %w, %b.reshape
# 	%b: f32[2,4] output = reduce_sum %b.gather {axes=[1], keepdims=0}
# }
