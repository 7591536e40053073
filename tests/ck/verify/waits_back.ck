# A transfer ends behind a later node.
# run: --passes=none
# error: no node writes 'x'
graph @f {
	input %x: f32[4]
	%y: f32[4] = all_reduce %x {group=1} wait %x
}
