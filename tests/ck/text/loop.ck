# A loop's body gets the types of its parts; default attributes go.
# run: --passes=none
graph @f {
	input %x: f32[2,8]
	input %b: f32[8]
	%y output, %m = loop %x, %b [t0 = add a0, a1; t1 = gelu t0 {tanh=1}; t2 = gt t1, t0; give t1, t2]
	%l: f32[2,8], _, %r = layernorm %x, %b, %b {axis=-1, eps=1e-05}
}
# expect:
# graph @f {
# 	input %x: f32[2,8]
# 	input %b: f32[8]
# 	%y: f32[2,8] output, %m: bool[2,8] = loop %x, %b [
# 		t0: f32 = add a0, a1
# 		t1: f32 = gelu t0 {tanh=1}
# 		t2: bool = gt t1, t0
# 		give t1, t2
# 	]
# 	%l: f32[2,8], _, %r: f32[2] = layernorm %x, %b, %b
# }
