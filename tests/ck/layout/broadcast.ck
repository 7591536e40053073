# An expanded value is read with stride 0 by a loop, copied for other kernels.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[1,4] bytes 64
# 	input %z: f32[3,4] bytes 64
# 	%e: f32[3,4] strides [0,1] in %x = expand %x {shape=[3,4]}
# 	%y: f32[3,4] output bytes 64 = loop %e, %z [
# 		t0: f32 = add a0, a1
# 		give t0
# 	]
# 	%t6: f32[3,4] bytes 64 = copy %e
# 	%s: f32[3,4] output bytes 64 = softmax %t6
# }
graph @f {
	input %x: f32[1,4]
	input %z: f32[3,4]
	%e = expand %x {shape=[3,4]}
	%y output = loop %e, %z [
		t0: f32 = add a0, a1
		give t0
	]
	%s output = softmax %e
}
