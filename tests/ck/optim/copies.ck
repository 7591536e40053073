# Updates write what products read of a parameter in 16 bits; what a loop casts
# by itself, and what is not trained, stays a cast.
# run: --dtype=bf16 --resident-copies=on --passes=precision,autodiff,optim
# check: state %copy.w: bf16[4,4] param %w state copy
# check: %h: bf16[2,4] = matmul %t10, %copy.w, %copy.b
# check: %copy.w.next: bf16[4,4] = adamw %w, %d.t11, %adamw.m.w, %adamw.v.w, %grad_norm, %copy.w @update
# check-not: %copy.c
# check-not: %copy.fixed
graph @f {
	input %x: f32[2,4]
	param %w: f32[4,4]
	param %b: f32[4]
	param %c: f32[4]
	param %fixed: f32[4,4] frozen
	%h = matmul %x, %w, %b
	%i = add %h, %c
	%y = matmul %i, %fixed
	%loss output = reduce_sum %y {keepdims=0}
	loss %loss
}
