# Nor does their maximum.
# run: --passes=fold
# error: node '/R' (ReduceMax): reduction over no elements
graph @f {
	const %x: f32[2,0] = {}
	%y output = reduce_max %x {axes=[1]} from "/R" ReduceMax
}
