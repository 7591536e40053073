# A running statistic is overwritten where it lies; a second update continues
# the first.
# run: --passes=fuse,layout,plan,inplace
graph @f {
	props bound static canon loss
	input %x: f32[4,3]
	buffer %m: f32[3]
	%y: f32[4,3], %mean: f32[3], %var: f32[3] = batchnorm %x
	%m1: f32[3] = bn_update %m, %mean {momentum=0.75}
	%z: f32[4,3], %mean2: f32[3], %var2: f32[3] = batchnorm %y
	%m2: f32[3] = bn_update %m1, %mean2 {momentum=0.75}
	%loss: f32[] output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	props planned
# 	input %x: f32[4,3] bytes 64
# 	buffer %m: f32[3] bytes 64
# 	%y: f32[4,3] bytes 64, %mean: f32[3] bytes 64, %var: f32[3] bytes 64 = batchnorm %x
# 	%m1: f32[3] in %m = bn_update %m, %mean {momentum=0.75}
# 	%z: f32[4,3] bytes 64, %mean2: f32[3] bytes 64, %var2: f32[3] bytes 64 = batchnorm %y
# 	%m2: f32[3] in %m = bn_update %m1, %mean2 {momentum=0.75}
# 	%loss: f32[] output bytes 64 = reduce_sum %z {axes=[0,1], keepdims=0}
# 	loss %loss
# }
