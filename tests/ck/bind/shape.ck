# A shape binds the names in it.
# run: --passes=bind --shape ids=2x5
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
