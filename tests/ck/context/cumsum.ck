# What runs along the sequence is refused, unless it depends on inputs alone.
# run: --passes=context --cp 2 --cp-dim ids=1
# error: the op runs along the sequence, or combines positions: operand 0, f32[1,4,3], has positions along dim 1
graph @f {
	input %ids: i64[1,4]
	param %w: f32[5,3]
	%n = cumsum %ids {axis=1}
	%x = gather %w, %n
	%c = cumsum %x {axis=1}
	%loss output = reduce_mean %c {axes=[0,1,2], keepdims=0}
	loss %loss
}
