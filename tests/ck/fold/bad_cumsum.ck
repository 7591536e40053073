# The axis of cumsum is one number.
# run: --passes=fold
# error: node '/C' (CumSum): the axis is not a scalar
graph @f {
	input %x: f32[2,2]
	const %k: i64[2] = {0,1}
	%y output = cumsum %x, %k from "/C" CumSum
}
