# Slices, transposes and splits of axes are views; reshapes that merge apart axes are not.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[2,3,12] bytes 320
# 	param %w: f32[12,12] bytes 576
# 	%q: f32[2,3,4] strides [36,12,1] start 4 in %x = slice %x {start=[0,0,4], step=[1,1,1]}
# 	%r: f32[2,3,2,2] strides [36,12,2,1] start 4 in %x = reshape %q {shape=[2,3,2,2]}
# 	%t: f32[2,2,3,2] strides [36,2,12,1] start 4 in %x = transpose %r {perm=[0,2,1,3]}
# 	%m: f32[4,3,2] bytes 128 = reshape %t {shape=[4,3,2]}
# 	%f: f32[2,12] bytes 128 = reshape %t {shape=[2,12]}
# 	%s: f32[2,12] bytes 128 = softmax %f
# 	%y: f32[2,12] output bytes 128 = matmul %s, %w
# 	%z: f32[4,3,3] output bytes 192 = matmul %m, %m {tb=1}
# }
graph @f {
	input %x: f32[2,3,12]
	param %w: f32[12,12] = splat 1
	%q: f32[2,3,4] = slice %x {start=[0,0,4], step=[1,1,1]}
	%r = reshape %q {shape=[2,3,2,2]}
	%t = transpose %r {perm=[0,2,1,3]}
	%m = reshape %t {shape=[4,3,2]}
	%f = reshape %t {shape=[2,12]}
	%s = softmax %f
	%y output = matmul %s, %w
	%z output = matmul %m, %m {tb=1}
}
