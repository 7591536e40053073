# Casts truncate, wrap, and take everything but 0 for true.
# run: --passes=fold
# expect:
# graph @f {
# 	const %i: i64[5] output = {-1, 1, 0, 0, 300}
# 	const %b: bool[5] output = {1, 1, 1, 1, 1}
# 	const %u: u8[3] output = {1, 255, 0}
# 	const %h: f16[5] output = {-1.90039, 1.90039, 0.25, -0.25, 300}
# 	const %t: bool[3] output = {1, 1, 0}
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
