# run: --target=cuda --epilogues=off --passes=fuse
# check-not: matmul_
graph @f {
	input %dy: bf16[16,4]
	input %a: bf16[16,8]
	%db output = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw output = matmul %a, %dy {ta=1} @backward
}
