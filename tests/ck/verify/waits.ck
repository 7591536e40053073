# What is on its way between ranks nobody reads, overwrites or waits for in vain.
# run: --passes=none
# error: node 3 (exp, value y): accesses memory that node 2 receives into until node 3 has run
# error: node 5 (sgd, value p): overwrites memory that node 4 sends until node 5 has run
# error: node 4 (all_reduce): the transfer ends after node 5, when updates have begun
# error: node 3 (exp): the transfer cannot end after node 4
graph @f {
	ranks 2
	input %x: f32[4]
	param %p: f32[4]
	%a: f32[4] placement partial = mul %x, %x
	%y: f32[4] = all_reduce %a wait %b
	%b: f32[4] = exp %y wait %z
	%z: f32[4] = all_reduce %p wait %p.new
	%p.new: f32[4] = sgd %p, %b @update
}
