# Outputs that --output names stay.
# run: --passes=loss --output log*
graph @f {
	input %x: f32[2,3]
	const %c: f32[] = {3}
	%h = tanh %x
	%logits output = mul %h, %c
	%loss output = reduce_mean %h {axes=[0,1], keepdims=0}
	%aux output = reduce_sum %h {axes=[0,1], keepdims=0}
}
# expect:
# graph @f {
# 	input %x: f32[2,3]
# 	const %c: f32[] = {3}
# 	%h: f32[2,3] = tanh %x
# 	%logits: f32[2,3] output = mul %h, %c
# 	%loss: f32[] output = reduce_mean %h {axes=[0,1], keepdims=0}
# 	loss %loss
# }
