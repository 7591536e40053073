# An unknown input is an error that lists the known ones.
# run: --passes=bind --shape id=2x5
# error: --shape id: no such input; inputs:
# stderr: 'ids'
# stderr: 'mask'
graph @f {
	input %ids: i64[batch,seq]
	input %mask: bool[batch,seq]
	%y output = where %mask, %ids, %ids
}
