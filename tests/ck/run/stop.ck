# --stop-after ends the pipeline behind the pass named.
# run: --stop-after=bind --dim n=3
# expect:
# graph @f {
# 	input %x: f32[n=3]
# 	%i: f32[3] = identity %x
# 	%y: f32[3] output = neg %i
# }
graph @f {
	input %x: f32[n]
	%i = identity %x
	%y output = neg %i
}
