# Values in host memory, and transfers between it and device memory.
# run: --passes=none
graph @f {
	input %x: f32[4]
	param %p: f32[4]
	state %m: f32[4] host param %p state m
	%f: f32[4] = fetch %m
	%h: f32[4] host = offload %x
	%i: f32[2] host = slice %h {start=[2], step=[1]}
	%j: f32[2] = fetch %i
	%n: f32[4] host = offload_into %m, %f @update
}
# expect:
# graph @f {
# 	input %x: f32[4]
# 	param %p: f32[4]
# 	state %m: f32[4] host param %p state m
# 	%f: f32[4] = fetch %m
# 	%h: f32[4] host = offload %x
# 	%i: f32[2] host = slice %h {start=[2], step=[1]}
# 	%j: f32[2] = fetch %i
# 	%n: f32[4] host = offload_into %m, %f @update
# }
