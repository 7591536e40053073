# Adafactor is not element-wise: a row of means stays in device memory, of 64 KiB too.
# run: --passes=optim,fuse,offload --offload state --optimizer adafactor
# check: state %adafactor.col.w: f32[16384] param
# check-count: 0 host
# check-count: 0 fetch
graph @f {
	props canon loss bwd
	input %x: f32[2,256]
	param %w: f32[256,16384]
	param %b: f32[16384]
	%y = matmul %x, %w, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	%dy: f32[2,16384] = fill {shape=[2,16384], value=1} @backward
	%db param %b = reduce_sum %dy {axes=[0], keepdims=0} @backward
	%dw param %w = matmul %x, %dy {ta=1} @backward
	loss %loss
}
