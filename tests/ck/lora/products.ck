# Adapters beside both forms of a weight; the last --lora that matches counts, a weight without ".weight" keeps its name whole, and all else is
# frozen but for what --train names.  Two products of one weight share its adapter; a product that is scaled scales it, too.
# run: --passes=lora --lora *=3 --lora a.*=2:4 --train a.bias
graph @f {
	input %x: f32[5,3]
	param %a.weight: f32[4,3] = splat 1
	param %a.bias: f32[4] = splat 1
	param %b: f32[4,4] = splat 1
	props static canon
	%y = matmul %x, %a.weight, %a.bias {tb=1}
	%h = matmul %y, %b {alpha=0.5}
	%z = matmul %h, %b
	%loss: f32[] output = reduce_mean %z {axes=[0,1], keepdims=0}
}
# check: 	param %a.weight: f32[4,3] frozen
# check: 	param %a.bias: f32[4] =
# check: 	param %b: f32[4,4] frozen
# check: 	param %a.lora_A.weight: f32[2,3] = {0.51386708, 0.142738745, -0.395712286, 0.403684229, -0.159766182, 0.318586707}
# check: 	param %a.lora_B.weight: f32[4,2] = {0, 0, 0, 0, 0, 0, 0, 0}
# check: 	param %b.lora_A.weight: f32[3,4]
# check: 	param %b.lora_B.weight: f32[4,3]
# check: matmul %x, %a.lora_A.weight {tb=1}
# check: %t11, %a.lora_B.weight {tb=1, alpha=2}
# check: matmul %t13, %b.lora_A.weight {tb=1}
# check: %b.lora_B.weight {tb=1, alpha=0.5}
# check: %b.lora_B.weight {tb=1}
