# Casts truncate, wrap, and take everything but 0 for true.
# run: --passes=fold
# expect:
# graph @f {
# 	const %t8: i64[5] = {-1, 1, 0, 0, 300}
# 	const %t10: bool[5] = {1, 1, 1, 1, 1}
# 	const %t12: u8[3] = {1, 255, 0}
# 	const %t14: f16[5] = {-1.90039, 1.90039, 0.25, -0.25, 300}
# 	const %t16: bool[3] = {1, 1, 0}
# 	%i: i64[5] output = copy %t8
# 	%b: bool[5] output = copy %t10
# 	%u: u8[3] output = copy %t12
# 	%h: f16[5] output = copy %t14
# 	%t: bool[3] output = copy %t16
# }
graph @f {
	const %x: f32[5] = {-1.9,1.9,0.25,-0.25,300}
	const %n: i64[3] = {257,-1,0}
	%i output = cast %x {to=5}
	%b output = cast %x {to=13}
	%u output = cast %n {to=12}
	%h output = cast %x {to=3}
	%t output = cast %n {to=13}
}
