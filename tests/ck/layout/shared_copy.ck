# Readers that need the same row-major copy share it.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[3,4] bytes 64
# 	%t: f32[4,3] strides [1,4] in %x = transpose %x {perm=[1,0]}
# 	%y: f32[4,3] output bytes 64 = loop %t [
# 		t0: f32 = neg a0
# 		give t0
# 	]
# 	%t6: f32[4,3] bytes 64 = copy %t
# 	%a: f32[4,3] output bytes 64 = softmax %t6
# 	%b: f32[4,3] output bytes 64 = log_softmax %t6
# }
graph @f {
	input %x: f32[3,4]
	%t = transpose %x {perm=[1,0]}
	%y output = loop %t [
		t0: f32 = neg a0
		give t0
	]
	%a output = softmax %t
	%b output = log_softmax %t
}
