# A reshape between two nodes keeps them apart: elements stand elsewhere.
# run: --passes=fuse
# expect:
# graph @f {
# 	input %x: f32[4,8]
# 	input %z: f32[8,4]
# 	%a: f32[4,8] = loop %x [
# 		t0: f32 = exp a0
# 		give t0
# 	]
# 	%r: f32[8,4] = reshape %a {shape=[8,4]}
# 	%t: f32[8,4] = transpose %a {perm=[1,0]}
# 	%y: f32[8,4] output = loop %r, %z, %t [
# 		t0: f32 = mul a0, a1
# 		t1: f32 = add t0, a2
# 		give t1
# 	]
# }
graph @f {
	input %x: f32[4,8]
	input %z: f32[8,4]
	%a = exp %x
	%r = reshape %a {shape=[8,4]}
	%t = transpose %a {perm=[1,0]}
	%b = mul %r, %z
	%y output = add %b, %t
}
