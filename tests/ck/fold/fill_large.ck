# A constant that is too large to compute but repeats is a broadcast.
# run: --passes=fold --fold-limit=1000
# expect:
# graph @f {
# 	input %x: f32[1000]
# 	const %t5: f32[] = {3}
# 	%z: f32[1000] = expand %t5 {shape=[1000]}
# 	%y: f32[1000] output = add %x, %z
# }
graph @f {
	input %x: f32[1000]
	const %shape: i64[1] = {1000}
	%z = constant_of_shape %shape {value=3}
	%y output = add %x, %z
}
