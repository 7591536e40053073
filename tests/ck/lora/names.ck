# The adapters of `a` and `a.weight` would have one name.
# run: --passes=lora --lora *=2
# error: --lora: the adapter of 'a' would be named 'a.lora_A.weight', like that of 'a.weight'
graph @f {
	input %x: f32[5,3]
	param %a: f32[3,4]
	param %a.weight: f32[4,4]
	props static canon
	%y = matmul %x, %a
	%z = matmul %y, %a.weight
	%loss: f32[] output = reduce_mean %z {axes=[0,1], keepdims=0}
}
