# Values that are alive together and share some bytes: replay refuses.
# run: --passes=account,replay
graph @f {
	props loss planned
	input %x: f32[4,16] bytes 256
	param %w: f32[16,16] bytes 1024
	%a: f32[4,16] bytes 256 at 256 = matmul %x, %w
	%b: f32[4,16] bytes 256 at 64 = matmul %a, %w
	%c: f32[4,16] bytes 256 at 320 = matmul %b, %w
	%d: f32[4,16] output bytes 256 at 0 = matmul %c, %w
}
# error: overlap while both are alive
