# One of three heads on a rank looks like one head that all ranks have: they do not share a loop.
# run: --passes=fuse
# expect:
# graph @f {
# 	ranks 3
# 	param %q: f32[1,1,7,8] placement 1 [3]
# 	input %k: f32[1,1,7,8]
# 	input %c: f32[1,1,7,8]
# 	%a: f32[1,1,7,8] output placement 1 [3] = loop %q, %c [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# 	%b: f32[1,1,7,8] output = loop %k, %c [
# 		t0: f32 = mul a0, a1
# 		give t0
# 	]
# }
graph @f {
	ranks 3
	param %q: f32[1,1,7,8] placement 1 [3]
	input %k: f32[1,1,7,8]
	input %c: f32[1,1,7,8]
	%a output = mul %q, %c
	%b output = mul %k, %c
}
