# An input `labels` that the graph declares and does not use is taken.
# run: --passes=loss --loss ce:y
graph @f {
	input %x: f32[2,4]
	input %labels: i64[2]
	%y output = tanh %x
	%z output = neg %x
}
# expect:
# graph @f {
# 	input %x: f32[2,4]
# 	input %labels: i64[2]
# 	%y: f32[2,4] = tanh %x
# 	%loss: f32[] output, %loss.lse: f32[2], %loss.denom: f32[] = sce %y, %labels {ignore=-100}
# 	loss %loss
# }
