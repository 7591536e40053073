# Slices in another order, of unequal lengths, of a part of the rows, along
# another axis, or reduced in two ways are no bags.
# run: --passes=canon
graph @f {
	input %x: f32[5,4]
	input %z: f32[4,4]
	%s0: f32[2,4] = slice %x {start=[0,0], step=[1,1]}
	%s1: f32[2,4] = slice %x {start=[2,0], step=[1,1]}
	%s2: f32[3,4] = slice %x {start=[2,0], step=[1,1]}
	%z0: f32[2,4] = slice %z {start=[0,0], step=[1,1]}
	%z1: f32[2,4] = slice %z {start=[2,0], step=[1,1]}
	%part0: f32[1,4] = reduce_sum %s0 {axes=[0]}
	%part1: f32[1,4] = reduce_sum %s1 {axes=[0]}
	%part: f32[2,4] output = concat %part0, %part1
	%uneven0: f32[1,4] = reduce_max %s0 {axes=[0]}
	%uneven2: f32[1,4] = reduce_max %s2 {axes=[0]}
	%uneven: f32[2,4] output = concat %uneven0, %uneven2
	%order0: f32[1,4] = reduce_max %z0 {axes=[0]}
	%order1: f32[1,4] = reduce_max %z1 {axes=[0]}
	%order: f32[2,4] output = concat %order1, %order0
	%ways0: f32[1,4] = reduce_sum %z0 {axes=[0]}
	%ways1: f32[1,4] = reduce_mean %z1 {axes=[0]}
	%ways: f32[2,4] output = concat %ways0, %ways1
	%axis0: f32[2,1] = reduce_sum %z0 {axes=[1]}
	%axis1: f32[2,1] = reduce_sum %z1 {axes=[1]}
	%axis: f32[4,1] output = concat %axis0, %axis1
}
# expect:
# graph @f {
# 	input %x: f32[5,4]
# 	input %z: f32[4,4]
# 	%s0: f32[2,4] = slice %x {start=[0,0], step=[1,1]}
# 	%s1: f32[2,4] = slice %x {start=[2,0], step=[1,1]}
# 	%s2: f32[3,4] = slice %x {start=[2,0], step=[1,1]}
# 	%z0: f32[2,4] = slice %z {start=[0,0], step=[1,1]}
# 	%z1: f32[2,4] = slice %z {start=[2,0], step=[1,1]}
# 	%part0: f32[1,4] = reduce_sum %s0 {axes=[0]}
# 	%part1: f32[1,4] = reduce_sum %s1 {axes=[0]}
# 	%part: f32[2,4] output = concat %part0, %part1
# 	%uneven0: f32[1,4] = reduce_max %s0 {axes=[0]}
# 	%uneven2: f32[1,4] = reduce_max %s2 {axes=[0]}
# 	%uneven: f32[2,4] output = concat %uneven0, %uneven2
# 	%order0: f32[1,4] = reduce_max %z0 {axes=[0]}
# 	%order1: f32[1,4] = reduce_max %z1 {axes=[0]}
# 	%order: f32[2,4] output = concat %order1, %order0
# 	%ways0: f32[1,4] = reduce_sum %z0 {axes=[0]}
# 	%ways1: f32[1,4] = reduce_mean %z1 {axes=[0]}
# 	%ways: f32[2,4] output = concat %ways0, %ways1
# 	%axis0: f32[2,1] = reduce_sum %z0 {axes=[1]}
# 	%axis1: f32[2,1] = reduce_sum %z1 {axes=[1]}
# 	%axis: f32[4,1] output = concat %axis0, %axis1
# }
