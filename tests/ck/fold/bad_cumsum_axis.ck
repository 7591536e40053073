# The axis of cumsum exists.
# run: --passes=fold
# error: node '/C' (CumSum): the axis is out of range
graph @f {
	input %x: f32[2,2]
	const %k: i64[] = {2}
	%y output = cumsum %x, %k from "/C" CumSum
}
