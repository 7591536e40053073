# Without masters parameters are narrow themselves and need no copies.
# run: --passes=precision --dump=precision --dtype f16 --master-weights off
graph @f {
	props static canon loss
	input %x: f64[2,4]
	param %w: f32[4,4]
	%y = cast %x {to=f32}
	%z = matmul %y, %w
	%loss output = reduce_sum %z {axes=[0,1], keepdims=0}
	loss %loss
}
# check: # %x f64 -> f64 input, weakly typed: follows other operands
# check: # %w f32 -> f16 parameter without a float32 master
# check: # %y f32 -> f64 cast in the file, overridden: now %x
# check: # %z f32 -> f16 matmul computes in f16
# check: # 2 f32, 1 f64, 3 f16; 2 casts inserted, 1 casts of the file overridden
