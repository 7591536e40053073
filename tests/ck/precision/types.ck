# Products and what is between them are narrow; parameters and the loss are not, and each value is cast once.
# run: --passes=precision --dtype bf16
graph @f {
	props static canon loss
	input %x: f32[2,4]
	input %label: i64[2]
	param %w: f32[4,4]
	param %b: f32[4]
	const %c: f32[] = {0.3}
	%h = mul %x, %c
	%y = matmul %h, %w
	%z = matmul %h, %w, %b
	%s = add %y, %z
	%loss output, %lse, %n = sce %s, %label {reduction=1}
	loss %loss
}
# check: param %w: f32[4,4]
# check: param %b: f32[4]
# check: %h: f32[2,4] = mul %x, %c
# check: bf16[2,4] = cast %h {to=bf16}
# check: bf16[4,4] = cast %w {to=bf16}
# check: %y: bf16[2,4] = matmul
# check: bf16[4] = cast %b {to=bf16}
# check: %z: bf16[2,4] = matmul
# check: %s: bf16[2,4] = add %y, %z
# check: f32[2,4] = cast %s {to=f32}
# check: %loss: f32[] output
# check-count: 4 = cast
