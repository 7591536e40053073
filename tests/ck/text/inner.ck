# A wrong inner extent names the node and both operands.
# run: --passes=none
# error: ckc: inner.ck:7: node 'y' (matmul): inner dims 4 and 16 of the matrices differ: f32[2,4] and f32[16,8]
graph @f {
	input %x: f32[2,4]
	param %w: f32[16,8]
	%y = matmul %x, %w
}
