# One name cannot have two sizes.
# run: --passes=bind --dim batch=2 --dim seq=5 --shape mask=3x5
# error: dim 'batch' has conflicting sizes: 2 from --dim batch=2, 3 from --shape mask
graph @f {
	input %ids: i64[batch,seq]
	input %mask: bool[batch,seq]
	%y output = where %mask, %ids, %ids
}
