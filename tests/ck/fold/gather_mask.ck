# A mask that is indexed by its own coordinates is a view of it.
# run: --passes=fold
# expect:
# graph @f {
# 	input %mask: bool[2,3]
# 	%t8: bool[2,1,1,3] = reshape %mask {shape=[2,1,1,3]}
# 	%a: bool[2,1,2,3] output = expand %t8 {shape=[2,1,2,3]}
# 	%b: bool[3,2] output = transpose %mask {perm=[1,0]}
# 	%t10: bool[1,3] = slice %mask {start=[1,0], step=[1,1]}
# 	%c: bool[3] output = reshape %t10 {shape=[3]}
# }
graph @f {
	input %mask: bool[2,3]
	const %idx: i64[2,1,2,3,2] = {0,0,0,1,0,2, 0,0,0,1,0,2, 1,0,1,1,1,2, 1,0,1,1,1,2}
	const %swap: i64[3,2,2] = {0,0,1,0, 0,1,1,1, 0,2,1,2}
	const %row: i64[3,2] = {1,0,1,1,1,2}
	%a output = gather_nd %mask, %idx
	%b output = gather_nd %mask, %swap
	%c output = gather_nd %mask, %row
}
