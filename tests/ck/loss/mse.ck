# Mean squared difference to a new input.
# run: --passes=loss --loss mse:y
graph @f {
	input %x: f32[2,4]
	%y output = tanh %x
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	input %target: f32[2,4]
# 	%y: f32[2,4] = tanh %x
# 	%t4: f32[2,4] = sub %y, %target
# 	%t5: f32[2,4] = mul %t4, %t4
# 	%loss: f32[] output = reduce_mean %t5 {axes=[0,1], keepdims=0}
# 	loss %loss
# }
