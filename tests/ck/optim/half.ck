# A gradient computed in 16 bits is taken as it is; states are of the type asked for.
# run: --passes=optim --state-dtype bf16 --optimizer sgdm
graph @f {
	props canon loss bwd
	input %x: bf16[2,4]
	param %w: f32[4,4]
	param %g: f32[4]
	%h: bf16[4,4] = cast %w {to=bf16}
	%y = matmul %x, %h
	%wide: f32[2,4] = cast %y {to=f32}
	%z = mul %wide, %g
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	%dz: f32[2,4] = fill {shape=[2,4], value=1} @backward
	%dg0 = mul %dz, %wide @backward
	%dg param %g = reduce_sum %dg0 {axes=[0], keepdims=0} @backward
	%dy0 = mul %dz, %g @backward
	%dy: bf16[2,4] = cast %dy0 {to=bf16} @backward
	%dh: bf16[4,4] = matmul %x, %dy {ta=1} @backward
	%dw: f32[4,4] param %w = cast %dh {to=f32} @backward
	loss %loss
}
# check: state %sgdm.m.g: bf16[4] param %g state m
# check: state %sgdm.m.w: bf16[4,4] param %w state m
# check: %dg: f32[4] param %g = reduce_sum
# check: %dh: bf16[4,4] param %w = matmul
# check: grad_norm %dg, %dh
# check: sgdm %w, %dh, %sgdm.m.w
