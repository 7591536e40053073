# Until a transfer has ended nothing accesses what it writes, nor overwrites what it reads.
# run: --passes=none
# error: node 2 (exp, value f): accesses memory that node 1 receives into until node 2 has run
# error: node 4 (offload_into, value m): overwrites memory that node 3 sends until node 4 has run
# error: node 6 (fetch, value h): accesses memory that node 5 receives into until node 6 has run
graph @f {
	input %x: f32[4]
	param %p: f32[4]
	state %m: f32[4] host param %p state m
	%f: f32[4] = fetch %m @update wait %a
	%a: f32[4] = exp %f @update
	%g: f32[4] = fetch %m @update wait %n
	%n: f32[4] host = offload_into %m, %a @update
	%h: f32[4] host = offload %x @update wait %c
	%c: f32[4] = fetch %h @update
}
