# A row product's summands are added up right behind it, and the bias once,
# behind the sum; a column product keeps its bias, in pieces.
# run: --passes=shard,autodiff --tp=2 --quiet
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %w1: f32[8,64]
	param %b1: f32[64]
	param %w2: f32[64,8]
	param %b2: f32[8]
	%h = matmul %x, %w1, %b1
	%a = gelu %h
	%o = matmul %a, %w2, %b2
	%y = gelu %o
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %h: f32[4,32] placement 1 [64] = matmul %x, %w1, %b1
# check: %o.product: f32[4,8] placement partial = matmul %a, %w2
# check: %o.product.all_reduce: f32[4,8] = all_reduce %o.product
# check: %o: f32[4,8] = add %o.product.all_reduce, %b2
# check: %d.b2: f32[8] param %b2 adjoint %b2 = reduce_sum %d.o
# check: %d.b1: f32[32] param %b1 adjoint %b1 placement 0 [64] = reduce_sum %d.h
# check-count: 1 = all_reduce
