# Resize becomes one map for every axis that changes; a bias of zeros goes.
# run: --passes=fold
graph @f {
	input %x: f32[1,2,4,5]
	const %s: f32[4] = {1, 1, 2, 0.5}
	const %z: f32[3] = {0, 0, 0}
	param %w: f32[3,2,3,3]
	%c = conv %x, %w, %z {begin=[1,1], end=[1,1]}
	%y output = interpolate %c, _, %s {mode=1}
}
# expect:
# graph @f {
# 	input %x: f32[1,2,4,5]
# 	param %w: f32[3,2,3,3]
# 	%c: f32[1,3,4,5] = conv %x, %w {stride=[1,1], dilation=[1,1], begin=[1,1], end=[1,1]}
# 	%t7: f32[1,3,8,5] = resize %c {axis=2, extent_in=4, extent_out=8, scale=2, mode=1}
# 	%y: f32[1,3,8,2] output = resize %t7 {axis=3, extent_in=5, extent_out=2, scale=0.5, mode=1}
# }
