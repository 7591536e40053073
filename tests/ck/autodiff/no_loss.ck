# Without a loss nothing is added.
# run: --passes=autodiff
graph @f {
	param %x: f32[2,4]
	%y output = sin %x
	props loss
}
# expect:
# graph @f {
# 	props loss bwd
# 	param %x: f32[2,4]
# 	%y: f32[2,4] output = sin %x
# }
