# Adafactor keeps means over rows and columns of a matrix, and every square of a vector.
# run: --passes=optim --optimizer adafactor
graph @f {
	props canon loss bwd
	input %x: f32[2,3]
	param %w: f32[3,4]
	param %b: bf16[4]
	%c = cast %b {to=1}
	%y = matmul %x, %w, %c
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dc = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%db param %b = cast %dc {to=4} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
# check: state %adafactor.v.b: f32[4] param %b state v
# check: state %adafactor.row.w: f32[3] param %w state row
# check: state %adafactor.col.w: f32[4] param %w state col
# check: %b.next: bf16[4], %adafactor.v.b.next: f32[4] = adafactor %b, %db, %adafactor.v.b, _, _, _, _, %grad_norm @update
# check: %w.next: f32[3,4], %adafactor.row.w.next: f32[3], %adafactor.col.w.next: f32[4] = adafactor %w, %dw, %adafactor.row.w, %adafactor.col.w, _, _, _, %grad_norm @update
