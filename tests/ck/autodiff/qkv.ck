# Slices that tile one axis: the adjoint is one concat, nothing is padded.
# run: --passes=autodiff
# check: concat
# check-not: pad
# check-not: add
graph @f {
	param %w: f32[4,12]
	input %x: f32[2,4]
	%h = matmul %x, %w
	%q: f32[2,4] = slice %h {start=[0,0], step=[1,1]}
	%k: f32[2,4] = slice %h {start=[0,4], step=[1,1]}
	%v: f32[2,4] = slice %h {start=[0,8], step=[1,1]}
	%a = mul %q, %v
	%b = mul %a, %k
	%loss output = reduce_sum %b {keepdims=0}
	loss %loss
}
