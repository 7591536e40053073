# Which values may be in host memory: states, parameters that are trained, and what is offloaded.
# run: --passes=none
# error: value 1 (x): cannot be in host memory
# error: value 2 (p): cannot be in host memory
# error: value 6 (c): cannot be in host memory
# error: value 7 (a): cannot be in host memory
# error: value 8 (b): cannot be in host memory
graph @f {
	input %x: f32[4] host
	param %p: f32[4] frozen host
	input %x2: f32[4]
	param %q: f32[4] host
	state %m: f32[4] host param %q state m
	const %c: f32[1] host = {1}
	%a: f32[4] host output = offload %x2
	%b: f32[4] host resident = offload %x2
}
