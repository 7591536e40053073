graph @cnn {
	input %x: f32[2,3,8,8]
	input %y: i64[2]
	param %stem.weight: f32[8,3,3,3]
	param %stem.bias: f32[8]
	param %b1.weight: f32[8]
	param %b1.bias: f32[8]
	buffer %b1.running_mean: f32[8]
	buffer %b1.running_var: f32[8]
	param %dw.weight: f32[8,1,3,3]
	param %dw.bias: f32[8]
	param %g.weight: f32[8]
	param %g.bias: f32[8]
	param %pw.weight: f32[12,8,1,1]
	param %pw.bias: f32[12]
	param %b2.weight: f32[12]
	param %b2.bias: f32[12]
	buffer %b2.running_mean: f32[12]
	buffer %b2.running_var: f32[12]
	param %gr.weight: f32[12,3,3,3]
	param %gr.bias: f32[12]
	param %up.weight: f32[12,8,2,2]
	param %up.bias: f32[8]
	param %mix.weight: f32[12,16,3,3]
	param %mix.bias: f32[12]
	param %out.weight: f32[5,48]
	param %out.bias: f32[5]
	%stem.y: f32[2,8,8,8] = conv %x, %stem.weight, %stem.bias {begin=[1,1], end=[1,1]}
	%b1.bn: f32[2,8,8,8], %b1.mean: f32[8], %b1.var: f32[8] = batchnorm %stem.y, %b1.weight, %b1.bias {eps=1e-05}
	%b1.bn.1: f32[8] = bn_update %b1.running_mean, %b1.mean {momentum=0.9}
	%b1.bn.2: f32[8] = bn_update %b1.running_var, %b1.var {momentum=0.9}
	%relu: f32[2,8,8,8] = relu %b1.bn
	%dw.y: f32[2,8,8,8] = conv %relu, %dw.weight, %dw.bias {begin=[1,1], end=[1,1], group=8}
	%g.rows: f32[1,8,128] = reshape %dw.y {shape=[1,8,128]}
	%g.norm: f32[1,8,128], %g.mean: f32[8], %g.var: f32[8] = batchnorm %g.rows {eps=1e-05}
	%g.reshape_1: f32[2,8,8,8] = reshape %g.norm {shape=[2,8,8,8]}
	%g.unsqueeze: f32[8,1,1] = reshape %g.weight {shape=[8,1,1]}
	%g.mul: f32[2,8,8,8] = mul %g.reshape_1, %g.unsqueeze
	%g.unsqueeze_1: f32[8,1,1] = reshape %g.bias {shape=[8,1,1]}
	%g.add: f32[2,8,8,8] = add %g.mul, %g.unsqueeze_1
	%mul: f32[2,8,8,8] = silu %g.add
	%pw.y: f32[2,12,8,8] = conv %mul, %pw.weight, %pw.bias
	%b2.bn: f32[2,12,8,8], %b2.mean: f32[12], %b2.var: f32[12] = batchnorm %pw.y, %b2.weight, %b2.bias {eps=1e-05}
	%b2.bn.1: f32[12] = bn_update %b2.running_mean, %b2.mean {momentum=0.9}
	%b2.bn.2: f32[12] = bn_update %b2.running_var, %b2.var {momentum=0.9}
	%relu_1: f32[2,12,8,8] = relu %b2.bn
	%maxpool: f32[2,12,4,4], %at: i32[2,12,4,4] = maxpool %relu_1 {stride=[2,2], kernel=[2,2]}
	%gr.y: f32[2,12,4,4] = conv %maxpool, %gr.weight, %gr.bias {begin=[1,1], end=[1,1], group=4}
	%add: f32[2,12,4,4] = add %maxpool, %gr.y
	%up.convtranspose: f32[2,8,8,8] = conv_dx %add, %up.weight, %up.bias {stride=[2,2], out=[8,8]}
	%concat: f32[2,16,8,8] = concat %up.convtranspose, %mul {axis=1}
	%mix.y: f32[2,12,8,8] = conv %concat, %mix.weight, %mix.bias {begin=[1,1], end=[1,1]}
	%mul_2: f32[2,12,8,8] = gelu %mix.y
	%averagepool: f32[2,12,4,4] = avgpool %mul_2 {stride=[2,2], kernel=[2,2], include=1}
	%wide: f32[2,12,8,4] = resize %averagepool {axis=2, extent_in=4, extent_out=8, scale=2, mode=1, round=2}
	%large: f32[2,12,8,8] = resize %wide {axis=3, extent_in=4, extent_out=8, scale=2, mode=1, round=2}
	%maxpool_1: f32[2,12,2,2], %at_1: i32[2,12,2,2] = maxpool %large {stride=[4,4], kernel=[4,4]}
	%flatten: f32[2,48] = reshape %maxpool_1 {shape=[2,48]}
	%out.gemm: f32[2,5] = matmul %flatten, %out.weight, %out.bias {tb=1}
	%loss: f32[] output, %loss.lse: f32[2], %loss.denom: f32[] = sce %out.gemm, %y {ignore=-100}
	loss %loss
}
