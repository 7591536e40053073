# Only transfers access host memory.
# run: --passes=none
# error: node 1 (add, value m): is in host memory: expected a fetch
# error: node 2 (fetch, value v): is in device memory: expected host memory
# error: node 3 (fetch, value c): is in host memory: expected a fetch
# error: node 4 (offload, value d): is in device memory: expected host memory
# error: node 5 (offload, value m): is in host memory: expected a fetch
# error: node 6 (slice, value h): is in device memory: expected host memory
# error: node 7 (slice, value i): is in host memory: expected a fetch
# error: node 8 (exp, value j): is in host memory: expected a fetch
# error: node 9 (offload_into, value v): is in device memory: expected host memory
# error: node 9 (offload_into, value f): is in device memory: expected host memory
# error: node 10 (offload_into, value m): is in host memory: expected a fetch
graph @f {
	input %x: f32[4]
	param %p: f32[4]
	state %m: f32[4] host param %p state m
	state %v: f32[4] param %p state v
	%a: f32[4] = add %x, %m
	%b: f32[4] = fetch %v
	%c: f32[4] host = fetch %m
	%d: f32[4] = offload %x
	%e: f32[4] host = offload %m
	%h: f32[2] = slice %m {start=[0], step=[1]}
	%i: f32[2] host = slice %x {start=[0], step=[1]}
	%j: f32[4] host = exp %x
	%f: f32[4] = offload_into %v, %x @update
	%g: f32[4] host = offload_into %m, %m @update
}
