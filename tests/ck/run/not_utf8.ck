# A safetensors file has no place for names that are not UTF-8.
# run: -o x.so
# error: the name of parameter 'w\xff' is not UTF-8
graph @f {
	input %x: f32[3]
	param %"w\xff": f32[3] = {1,2,3}
	%y = mul %x, %"w\xff"
	%loss: f32[] output = reduce_sum %y {axes=[0], keepdims=0}
}
