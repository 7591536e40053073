# A view of rows of which its step reads the first two alone: replay refuses.
# run: --passes=account,replay
graph @f {
	props loss planned
	input %x: f32[4,16] bytes 256
	param %w: f32[16,16] bytes 1024
	%a: f32[4,16] bytes 256 at 0 = matmul %x, %w
	%b: f32[2,16] in %a = slice %a {start=[0,0], step=[1,1]}
	%c: f32[2,16] start 16 in %a = reshape %b {shape=[2,16]}
	%d: f32[2,16] output bytes 128 at 256 = matmul %c, %w
}
# error: tensor 4 (c) covers bytes that the instruction does not read
