# What --device host compiles and times: every kind of op that takes long in
# the models that people train, at sizes where a core is busy for milliseconds.
graph @host {
	input %ids: i64[4,256] onnx
	input %labels: i64[1024] onnx
	input %image: f32[4,3,112,112] onnx
	# more than caches hold: memory's rate
	input %large: f32[16777216] onnx
	param %token: f32[4096,512]
	param %position: f32[256,512]
	param %n1: f32[512]
	param %n1b: f32[512]
	param %qkv.w: f32[512,1536]
	param %qkv.b: f32[1536]
	param %proj.w: f32[512,512]
	param %proj.b: f32[512]
	param %n2: f32[512]
	param %n2b: f32[512]
	param %up.w: f32[512,2048]
	param %up.b: f32[2048]
	param %down.w: f32[2048,512]
	param %down.b: f32[512]
	param %n3: f32[512]
	param %gate.w: f32[512,1376]
	param %lift.w: f32[512,1376]
	param %drop.w: f32[1376,512]
	param %c5.w: f32[512,256,3,3]
	param %c5.s: f32[512]
	param %c5.b: f32[512]
	param %few.w: f32[512,512]
	param %stem.w: f32[64,3,7,7]
	param %stem.s: f32[64]
	param %stem.b: f32[64]
	param %c1.w: f32[64,64,1,1]
	param %c1.s: f32[64]
	param %c1.b: f32[64]
	param %c2.w: f32[64,64,3,3]
	param %c2.s: f32[64]
	param %c2.b: f32[64]
	param %c3.w: f32[256,64,1,1]
	param %c3.s: f32[256]
	param %c3.b: f32[256]
	param %c4.w: f32[256,256,3,3]
	param %c4.s: f32[256]
	param %c4.b: f32[256]

	%larger output = add %large, %large

	# a small CNN
	%c0 = conv %image, %stem.w {stride=[2,2], dilation=[1,1], begin=[3,3], end=[3,3]}
	%c0n, %c0m, %c0v = batchnorm %c0, %stem.s, %stem.b
	%c0y = relu %c0n
	%p0, %p0i = maxpool %c0y {stride=[2,2], dilation=[1,1], begin=[1,1], end=[1,1], kernel=[3,3]}
	%c1 = conv %p0, %c1.w {stride=[1,1], dilation=[1,1], begin=[0,0], end=[0,0]}
	%c1n, %c1m, %c1v = batchnorm %c1, %c1.s, %c1.b
	%c1y = relu %c1n
	%c2 = conv %c1y, %c2.w {stride=[1,1], dilation=[1,1], begin=[1,1], end=[1,1]}
	%c2n, %c2m, %c2v = batchnorm %c2, %c2.s, %c2.b
	%c2y = relu %c2n
	%c2z = add %c2y, %p0
	%c3 = conv %c2z, %c3.w {stride=[1,1], dilation=[1,1], begin=[0,0], end=[0,0]}
	%c3n, %c3m, %c3v = batchnorm %c3, %c3.s, %c3.b
	%c3y = relu %c3n
	%c4 = conv %c3y, %c4.w {stride=[2,2], dilation=[1,1], begin=[1,1], end=[1,1]}
	%c4n, %c4m, %c4v = batchnorm %c4, %c4.s, %c4.b
	%c4y = relu %c4n
	%c5 = conv %c4y, %c5.w {stride=[2,2], dilation=[1,1], begin=[1,1], end=[1,1]}
	%c5n, %c5m, %c5v = batchnorm %c5, %c5.s, %c5.b
	%c5y = relu %c5n
	%h0 = reduce_mean %c5y {axes=[2,3], keepdims=0}
	%h1 = matmul %h0, %few.w
	%h2 = reshape %h1 {shape=[4,1,512]}

	# a GPT's layer
	%x0 = gather %token, %ids
	%x1 = add %x0, %position
	%a0, %a0m, %a0r = layernorm %x1, %n1, %n1b {axis=2}
	%a1 = reshape %a0 {shape=[1024,512]}
	%a2 = matmul %a1, %qkv.w, %qkv.b
	%a3 = reshape %a2 {shape=[4,256,3,8,64]}
	%a4 = transpose %a3 {perm=[2,0,3,1,4]}
	%q0: f32[1,4,8,256,64] = slice %a4 {start=[0,0,0,0,0], step=[1,1,1,1,1]}
	%k0: f32[1,4,8,256,64] = slice %a4 {start=[1,0,0,0,0], step=[1,1,1,1,1]}
	%v0: f32[1,4,8,256,64] = slice %a4 {start=[2,0,0,0,0], step=[1,1,1,1,1]}
	%q = reshape %q0 {shape=[4,8,256,64]}
	%k = reshape %k0 {shape=[4,8,256,64]}
	%v = reshape %v0 {shape=[4,8,256,64]}
	%o0, %o0l = attention %q, %k, %v {scale=0.125, causal=1}
	%o1 = transpose %o0 {perm=[0,2,1,3]}
	%o2 = reshape %o1 {shape=[1024,512]}
	%o3 = matmul %o2, %proj.w, %proj.b
	%o4 = reshape %o3 {shape=[4,256,512]}
	%x2 = add %x1, %o4
	%m0, %m0m, %m0r = layernorm %x2, %n2, %n2b {axis=2}
	%m1 = reshape %m0 {shape=[1024,512]}
	%m2 = matmul %m1, %up.w, %up.b
	%m3 = gelu %m2 {tanh=1}
	%m4 = matmul %m3, %down.w, %down.b
	%m5 = reshape %m4 {shape=[4,256,512]}
	%x3 = add %x2, %m5

	# the half of a LLaMA's layer that is different
	%g0, %g0r = rmsnorm %x3, %n3 {axis=2}
	%g1 = reshape %g0 {shape=[1024,512]}
	%g2 = matmul %g1, %gate.w
	%g3 = silu %g2
	%g4 = matmul %g1, %lift.w
	%g5 = mul %g3, %g4
	%g6 = matmul %g5, %drop.w
	%g7 = reshape %g6 {shape=[4,256,512]}
	%x4 = add %x3, %g7

	# the classifier, which sees the picture too
	%x5 = add %x4, %h2
	%l0 = reshape %x5 {shape=[1024,512]}
	%l1 = matmul %l0, %token {tb=1}
	%l2 output, %l2s, %l2d = sce %l1, %labels
	loss %l2
}
