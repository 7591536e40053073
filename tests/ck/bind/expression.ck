# A name that is an expression follows from its parts.
# run: --passes=bind --dim batch=2 --dim seq=5
# expect:
# graph @f {
# 	input %x: f32[batch=2,seq=5]
# 	input %y: f32["batch*seq"=10,"seq//2 + 1"=3]
# }
graph @f {
	input %x: f32[batch,seq]
	input %y: f32["batch*seq","seq//2 + 1"]
}
