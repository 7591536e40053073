# Axes of one element get strides that fit their neighbours.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[2,1,6] bytes 64
# 	%a: f32[2,1,1] strides [6,1,1] start 3 in %x = slice %x {start=[0,0,3], step=[1,1,1]}
# 	%b: f32[1,2,6] in %x = transpose %x {perm=[1,0,2]}
# 	%y: f32[2,1,1] output bytes 64 = loop %a [
# 		t0: f32 = neg a0
# 		give t0
# 	]
# 	%z: f32[1,2,2] output bytes 64 = matmul %b, %b {tb=1}
# }
graph @f {
	input %x: f32[2,1,6]
	%a: f32[2,1,1] = slice %x {start=[0,0,3], step=[1,1,1]}
	%b = transpose %x {perm=[1,0,2]}
	%y output = loop %a [
		t0: f32 = neg a0
		give t0
	]
	%z output = matmul %b, %b {tb=1}
}
