# Parameters, constants and activations change type; the loss does not, and an
# input joins through a cast.
# run: --passes=precision --dtype bf16
graph @f {
	props static canon loss
	input %x: f32[2,4]
	input %label: i64[2]
	param %w: f32[4,3]
	const %c: f32[] = {0.5}
	%h = mul %x, %c
	%y = matmul %h, %w
	%loss output, %lse, %n = sce %y, %label {reduction=1}
	loss %loss
}
# check: param %w: bf16[4,3]
# check: bf16[2,4] = cast %x {to=bf16}
# check: %y: bf16[2,3] = matmul
# check: f32[2,3] = cast %y {to=f32}
# check: %loss: f32[] output
