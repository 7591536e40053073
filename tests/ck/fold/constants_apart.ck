# Constants of equal bytes are one only if they are of one type; what repeats
# in its first rows alone keeps its extent.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	input %n: i32[2,3]
# 	const %zero: f32[] = {1.4013e-45}
# 	const %one: i32[] = {1}
# 	const %rows: f32[2,3] = {1, 1, 1, 2, 3, 4}
# 	const %alike.2: f32[1,3] = {1, 2, 3}
# 	%a: f32[2,3] output = add %x, %zero
# 	%b: i32[2,3] output = add %n, %one
# 	%c: f32[2,3] output = mul %x, %rows
# 	%d: f32[2,3] output = mul %x, %alike.2
# }
graph @f {
	input %x: f32[2,3]
	input %n: i32[2,3]
	const %zero: f32[] = {1e-45}
	const %one: i32[] = {1}
	const %rows: f32[2,3] = {1, 1, 1, 2, 3, 4}
	const %alike: f32[2,3] = {1, 2, 3, 1, 2, 3}
	%a output = add %x, %zero
	%b output = add %n, %one
	%c output = mul %x, %rows
	%d output = mul %x, %alike
}
