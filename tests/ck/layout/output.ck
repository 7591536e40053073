# An output is row-major: a transposition that is wanted is carried out.
# run: --passes=layout
# expect:
# graph @f {
# 	input %x: f32[3,4] bytes 64
# 	%y: f32[4,3] output bytes 64 = transpose %x {perm=[1,0]}
# 	%z: f32[12] output in %x = reshape %x {shape=[12]}
# 	%r: f32[3,4] output bytes 64 = slice %x {start=[2,0], step=[-1,1]}
# }
graph @f {
	input %x: f32[3,4]
	%y output = transpose %x {perm=[1,0]}
	%z output = reshape %x {shape=[12]}
	%r: f32[3,4] output = slice %x {start=[2,0], step=[-1,1]}
}
