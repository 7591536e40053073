# An index out of range is told by the node.
# run: --passes=fold
# error: node '/g' (Gather): index 2 is out of range for an axis of 2
graph @f {
	const %a: i64[2] = {1,2}
	const %i: i64[] = {2}
	%y output = gather %a, %i from "/g" Gather
}
