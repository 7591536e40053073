# A loop whose result is transposed and reshaped writes it transposed.
# run: --passes=fuse,layout
# expect:
# graph @f {
# 	input %x: f32[2,4,3,8] bytes 768
# 	input %c: f32[3,8] bytes 128
# 	const %half: f32[] bytes 64 = {0.5}
# 	%t8: f32[2,3,4,8] strides [96,8,24,1] in %x = transpose %x {perm=[0,2,1,3]}
# 	%t9: f32[1,1,3,8] in %c = reshape %c {shape=[1,1,3,8]}
# 	%t10: f32[1,3,1,8] in %c = transpose %t9 {perm=[0,2,1,3]}
# 	%t: f32[2,3,4,8] bytes 768 = loop %t8, %t10, %half [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = mul t0, a2
# 		give t1
# 	]
# 	%y: f32[6,32] output in %t = reshape %t {shape=[6,32]}
# }
graph @f {
	input %x: f32[2,4,3,8]
	input %c: f32[3,8]
	const %half: f32[] = {0.5}
	%a = mul %x, %c
	%b = mul %a, %half
	%t = transpose %b {perm=[0,2,1,3]}
	%y output = reshape %t {shape=[6,32]}
}
