# --dump=precision says of each value what became of it and why; what else is read as a graph stays one.
# run: --passes=precision --dump=precision --dtype bf16 --dropout-mask store --precision op:tanh=f32 --precision wished=bf16
graph @f {
	props static canon loss
	streams 1
	input %x: f32[4,8]
	input %label: i64[4]
	param %w: f32[8,8]
	param %g: f32[8]
	buffer %m: f32[8]
	const %c: f32[] = {0.3}
	%cx = mul %x, %c
	%y = matmul %cx, %w
	%r = relu %y
	%mean = reduce_mean %r {axes=[1], keepdims=1}
	%d = sub %r, %mean
	%e = add %d, %d
	%sum = add %r, %e
	%half = cast %e {to=f16}
	%th = tanh %half
	%t = cast %th {to=f32}
	%wished = exp %t
	%n, %n.mean, %n.rstd = layernorm %wished, %g
	%s = mul %n, %m
	%k = dropout %s {ratio=0.5, stream=1}
	%q = lt %k, %c
	%u = where %q, %k, %sum
	%u16 = cast %u {to=f32}
	%z = matmul %u16, %w
	%loss output, %lse, %count = sce %z, %label {reduction=1}
	loss %loss
}
# check: # dtypes, before -> after, and reason
# check: # %x f32 -> f32 input, weakly typed: follows other operands
# check: # %label i64 -> i64 not a float
# check: # %w f32 -> f32 parameter, float32 master
# check: # %m f32 -> f32 buffer, weakly typed: follows other operands
# check: # %c f32 -> f32 constant, weakly typed: follows other operands
# check: -> bf16 dropout with a stored mask
# check: # %t f32 -> f32 cast in the file, overridden: now %th
# check: # %k f32 -> bf16 dropout with a stored mask: now %
# check: # %u16 f32 -> bf16 cast in the file, overridden: now %u
# check: # %cx f32 -> f32 computed from inputs, parameters, constants only
# check: -> bf16 copy of %cx for matmul
# check: -> bf16 copy of %w for matmul
# check: # %y f32 -> bf16 matmul computes in bf16
# check: # %r f32 -> bf16 relu of bf16 operands
# check: -> f32 copy of %r for reduce_mean
# check: # %mean f32 -> f32 reduce_mean computes in f32
# check: # %d f32 -> f32 sub of bf16 and f32, one of them broadcast
# check: # %e f32 -> f32 add of f32 operands
# check: # %sum f32 -> bf16 add of bf16 and f32, element by element
# check: # %half f16 -> f16 cast of f32 operands
# check: # %th f16 -> f32 --precision op:tanh=f32
# check: # %wished f32 -> bf16 --precision wished=bf16
# check: # %n f32 -> bf16 layernorm computes in bf16
# check: # %n.mean f32 -> f32 statistics of layernorm
# check: # %s f32 -> bf16 mul of bf16 operands
# check: bf16 dropout with a stored mask
# check: bool dropout with a stored mask
# check: # %q bool -> bool not a float
# check: # %loss f32 -> f32 loss
# check: # %lse f32 -> f32 statistics of sce
# check: # 19 f32, 1 f16, 20 bf16, 1 i64, 2 bool; 9 casts inserted, 2 casts of the file overridden
