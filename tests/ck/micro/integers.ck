# A number of labels, of which there is one at least, is counted in float32.
# run: --passes=micro --grad-accum 2
graph @f {
	props canon loss
	input %x: f32[4,6]
	input %labels: i64[4]
	param %w: f32[6,5]
	const %zero: i64[] = {0}
	const %one: i64[] = {1}
	%z = matmul %x, %w
	%l, _, _ = sce %z, %labels {reduction=2, ignore=-100}
	%c = lt %zero, %labels
	%i = cast %c {to=i64}
	%n = reduce_sum %i {axes=[0], keepdims=0}
	%m = max %n, %one
	%d = cast %m {to=f32}
	%loss output = div %l, %d
	loss %loss
}
# check: %t17: f32[] = cast %n.2 {to=f32} count_pass 1
# check: %total.next: f32[] = accumulate %total, %t17 count_pass 1
# check: cast %total.next {to=i64}
# check: max
