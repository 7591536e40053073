# Slices get one start and step per axis; part and pad that cut are slices.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[4,6]
# 	%a: f32[4,3] output = slice %x {start=[0,5], step=[1,-2]}
# 	%b: f32[4,4] output = slice %x {start=[0,2], step=[1,1]}
# 	%c: f32[2,6] output = slice %x {start=[2,0], step=[1,1]}
# 	%t16: f32[1,6] = slice %x {start=[3,0], step=[1,1]}
# 	%d: f32[6] output = reshape %t16 {shape=[6]}
# 	%t17: f32[3,6] = slice %x {start=[1,0], step=[1,1]}
# 	%e: f32[3,8] output = pad %t17 {begin=[0,0], end=[0,2]}
# 	%f: f32[4,6] output = copy %x
# }
graph @f {
	input %x: f32[4,6]
	const %starts: i64[1] = {-1}
	const %ends: i64[1] = {-9223372036854775808}
	const %axes: i64[1] = {-1}
	const %steps: i64[1] = {-2}
	const %sizes: i64[2] = {2,4}
	const %pads: i64[4] = {-1,0,0,2}
	const %full: i64[1] = {0}
	const %end: i64[1] = {9223372036854775807}
	%a output = slice %x, %starts, %ends, %axes, %steps
	%b output = split %x, %sizes {axis=1, index=1}
	%c output = split %x {axis=0, index=1, count=2}
	%d output = split %x {axis=-2, index=3, chunk=1, keepdims=0}
	%e output = pad %x, %pads
	%f output = slice %x, %full, %end
}
