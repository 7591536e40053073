# An adapter does not take the name of a parameter that is there.
# run: --passes=lora --lora a.weight=2
# error: --lora: the adapter of 'a.weight' would be named 'a.lora_A.weight', like the value 'a.lora_B.weight'
graph @f {
	input %x: f32[5,3]
	param %a.weight: f32[3,4]
	param %a.lora_B.weight: f32[4]
	props static canon
	%y = matmul %x, %a.weight, %a.lora_B.weight
	%loss: f32[] output = reduce_mean %y {axes=[0,1], keepdims=0}
}
