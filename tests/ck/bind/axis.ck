# INPUT.AXIS binds the name there, and so the other inputs.
# run: --passes=bind --dim ids.0=2 --dim mask.1=5
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
