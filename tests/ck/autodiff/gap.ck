# Slices that leave a part of the axis uncovered: zeros that take no memory
# stand in the concat.
# run: --passes=autodiff
graph @f {
	param %w: f32[2,12]
	%q: f32[2,4] = slice %w {start=[0,0], step=[1,1]}
	%v: f32[2,4] = slice %w {start=[0,8], step=[1,1]}
	%a = mul %q, %v
	%loss output = reduce_sum %a {keepdims=0}
	loss %loss
}
# expect:
# graph @f {
# 	param %w: f32[2,12]
# 	const %t10: f32[] = {0}
# 	%q: f32[2,4] = slice %w {start=[0,0], step=[1,1]}
# 	%v: f32[2,4] = slice %w {start=[0,8], step=[1,1]}
# 	%a: f32[2,4] = mul %q, %v
# 	%loss: f32[] output = reduce_sum %a {keepdims=0}
# 	%d.loss: f32[] adjoint %loss = fill {value=1} @backward
# 	%d.a: f32[2,4] adjoint %a = expand %d.loss {shape=[2,4]} @backward
# 	%d.q: f32[2,4] adjoint %q = mul %d.a, %v @backward
# 	%d.v: f32[2,4] adjoint %v = mul %d.a, %q @backward
# 	%t11: f32[2,4] = expand %t10 {shape=[2,4]} @backward
# 	%d.w: f32[2,12] param %w adjoint %w = concat %d.q, %t11, %d.v {axis=1} @backward
# 	loss %loss
# }
