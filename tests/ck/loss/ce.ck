# Cross entropy over the last axis of the only output; labels become an input.
# run: --passes=loss --loss ce
graph @f {
	input %x: f32[2,3,4]
	%logits output = tanh %x
}
# expect:
# graph @f {
# 	input %x: f32[2,3,4]
# 	input %labels: i64[2,3]
# 	%logits: f32[2,3,4] = tanh %x
# 	%t4: f32[6,4] = reshape %logits {shape=[6,4]}
# 	%t5: i64[6] = reshape %labels {shape=[6]}
# 	%loss: f32[] output, %loss.lse: f32[6], %loss.denom: f32[] = sce %t4, %t5 {ignore=-100}
# 	loss %loss
# }
