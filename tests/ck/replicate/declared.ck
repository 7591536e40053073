# What the graph declares stands.
# run: --passes=replicate --dp=8
# error: --dp 8 --zero-group 0 --ep 0: the graph declares replicas 4, zero_group 0 and expert_group 0; change the declarations in the graph
graph @f {
	replicas 4
	input %x: f32[4,3]
	param %w: f32[3] = splat 1
	props static canon loss
	%y = mul %x, %w
	%loss: f32[] output = reduce_mean %y {axes=[0,1], keepdims=0}
	loss %loss
}
