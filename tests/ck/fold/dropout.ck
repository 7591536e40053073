# Ratio and training mode become attributes.
# run: --passes=fold
# expect:
# graph @f {
# 	input %x: f32[2]
# 	%y: f32[2] output = dropout %x {ratio=0.25}
# }
graph @f {
	input %x: f32[2]
	const %r: f32[] = {0.25}
	const %on: bool[] = {1}
	%y output = dropout %x, %r, %on
}
