# A fault of a node that came from ONNX names that node.
# run: --passes=none
# error: ckc: origin.ck:7: node '/fc/Add' (Add): shapes do not broadcast: f32[2,4] and f32[3]
graph @f {
	input %x: f32[2,4]
	param %b: f32[3]
	%y = add %x, %b from "/fc/Add" Add
}
