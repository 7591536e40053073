# Slices that overlap are padded and added.
# run: --passes=autodiff
# check-count: 2 = pad
# check-count: 1 = add
# check-count: 0 = concat
graph @f {
	param %w: f32[2,6]
	%q: f32[2,4] = slice %w {start=[0,0], step=[1,1]}
	%v: f32[2,4] = slice %w {start=[0,2], step=[1,1]}
	%a = mul %q, %v
	%loss output = reduce_sum %a {keepdims=0}
	loss %loss
}
