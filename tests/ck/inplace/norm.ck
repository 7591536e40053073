# A norm's gradient is written over what it is added to, and that of a scale,
# which is another output, is not the sum's.
# run: --passes=fuse,layout,plan,inplace
# check: %sum: f32[2,4] in %p, %ds: f32[4] bytes 64 = layernorm_grad
# check: = loop %s, %ds
graph @f {
	props bound static canon loss
	input %x: f32[2,4]
	input %s: f32[4]
	input %mean: f32[2]
	%p: f32[2,4] = exp %x
	%q: f32[4] = exp %s
	%dx: f32[2,4], %ds: f32[4], _ = layernorm_grad %x, %x, %s, %mean, %mean
	%sum: f32[2,4] = add %dx, %p
	%other output = add %ds, %q
	%y: f32[2,4] output = reduce_sum %sum {axes=[], noop=1}
}
