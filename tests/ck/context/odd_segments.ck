# With two stretches, from either end, no dim may have one segment.
# run: --passes=context --cp 2 --cp-dim ids=1
# error: operand 0, f32[1,8,4], has positions in 2 segments of dim 1
graph @f {
	input %ids: i64[1,8]
	param %w: f32[7,4]
	%e = gather %w, %ids
	%t = reshape %e {shape=[1,8,2,2]}
	%h = transpose %t {perm=[0,2,1,3]}
	%o, _ = attention %h, %h, %h {causal=1}
	%s = reshape %e {shape=[2,4,4]}
	%m = reduce_mean %s {axes=[0,1,2], keepdims=0}
	%n = reduce_mean %o {axes=[0,1,2,3], keepdims=0}
	%loss output = add %m, %n
	loss %loss
}
