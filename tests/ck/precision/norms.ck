# Norms take narrow values with scales in float32; what the file says of types is overruled.
# run: --passes=precision --dtype f16
graph @f {
	props static canon loss
	input %x: f32[4,8]
	param %g: f32[8]
	param %b: f32[8]
	param %w: f32[8,8]
	%m = matmul %x, %w
	%wide: f64[4,8] = cast %m {to=f64}
	%back: f32[4,8] = cast %wide {to=f32}
	%y, %mu, %rs = layernorm %back, %g, %b
	%loss output = reduce_sum %y {axes=[0,1], keepdims=0}
	loss %loss
}
# check: %m: f16[4,8] = matmul
# check: %y: f16[4,8], %mu: f32[4], %rs: f32[4] = layernorm %m, %g, %b
# check-not: f64
