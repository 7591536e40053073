# A finite causal constant beside an added mask: a query that both hide all keys
# from attends to hidden ones by the graph, and not once the constant is a flag.
# run: --passes=fold,canon
# stderr: queries whose visible keys are all masked out (left padding) attend to hidden keys in the file, but not in fused attention
# stderr: try: --attention unfused
# check: attention %q, %q, %q, %pad {causal=1}
graph @f {
	input %q: f32[1,1,2,4]
	input %pad: f32[1,1,1,2]
	const %past: f32[2,2] = {0,-1e9,0,0}
	%s = matmul %q, %q {tb=1}
	%t = add %s, %past
	%u = add %t, %pad
	%p = softmax %u {axis=3}
	%o: f32[1,1,2,4] output = matmul %p, %q
}
