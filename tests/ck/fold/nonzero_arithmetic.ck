# The number of elements that a selection finds is no constant.
# run: --passes=fold
# error: node '/Mul' (Mul): computes with a data-dependent size: the number of nonzero elements of 'x' is known only at run time (it depends on the contents of 'x')
graph @f {
	input %x: f32[6]
	param %p: f32[6]
	%i = nonzero %x
	%n = size %i
	%f = cast %n {to=f32}
	%y output = mul %f, %p from "/Mul" Mul
}
