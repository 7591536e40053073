# Which values may be in host memory: states and what is offloaded.
# run: --passes=none
# error: value 1 (x): cannot be in host memory
# error: value 2 (p): cannot be in host memory
# error: value 5 (c): cannot be in host memory
# error: value 6 (a): cannot be in host memory
# error: value 7 (b): cannot be in host memory
graph @f {
	input %x: f32[4] host
	param %p: f32[4] host
	param %q: f32[4]
	state %m: f32[4] host param %q state m
	const %c: f32[1] host = {1}
	%a: f32[4] host output = offload %q
	%b: f32[4] host resident = offload %q
}
