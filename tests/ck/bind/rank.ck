# A shape has the rank of its input.
# run: --passes=bind --shape ids=2x5x1 --dim batch=2 --dim seq=5
# error: --shape ids: found 3 extents, but the input has rank 2
graph @f {
	input %ids: i64[batch,seq]
	input %mask: bool[batch,seq]
	%y output = where %mask, %ids, %ids
}
