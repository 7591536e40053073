# An unknown name is an error that lists the known ones.
# run: --passes=bind --dim bach=2 --dim batch=2 --dim seq=5
# error: --dim bach=2: no such dim; named dims:
# stderr: 'batch' (axis 0 of 'ids')
# stderr: 'seq' (axis 1 of 'ids')
graph @f {
	input %ids: i64[batch,seq]
	input %mask: bool[batch,seq]
	%y output = where %mask, %ids, %ids
}
