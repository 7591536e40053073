# A name is bound wherever it occurs.
# run: --passes=bind --dim batch=2 --dim seq=5
# expect:
# graph @f {
# 	input %ids: i64[batch=2,seq=5]
# 	input %mask: bool[batch=2,seq=5]
# 	%y: i64[2,5] output = where %mask, %ids, %ids
# }
graph @f {
	input %ids: i64[batch,seq]
	input %mask: bool[batch,seq]
	%y output = where %mask, %ids, %ids
}
