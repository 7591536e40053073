# A mask's words go by the element's place in the whole, of which a piece of
# two stretches is not one run: dropout of both halves of a gate is not cut so.
# run: --passes=shard --tp=2 --quiet
graph @f {
	props static canon loss
	streams 1
	input %x: f32[4,8]
	param %w: f32[8,64]
	param %v: f32[32,8]
	%h = matmul %x, %w
	%d = dropout %h {ratio=0.5, stream=1}
	%a: f32[4,32] = slice %d {start=[0,0], step=[1,1]}
	%b: f32[4,32] = slice %d {start=[0,32], step=[1,1]}
	%c = mul %a, %b
	%y = matmul %c, %v
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check-count: 1 = dropout %h
# check-count: 0 placement 1 [32,32] = dropout
