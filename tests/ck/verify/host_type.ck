# A transfer changes no type.
# run: --passes=none
# error: node 1 (offload_into, value n): differs in type from what is transferred
graph @f {
	input %x: bf16[4]
	param %p: f32[4]
	state %m: f32[4] host param %p state m
	%n: f32[4] host = offload_into %m, %x @update
}
