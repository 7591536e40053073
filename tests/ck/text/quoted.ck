# Names that are not plain are quoted, control characters escaped.
# run: --passes=none
graph @"a model" {
	input %"x y": f32[2]
	%"/a:0\x1b[31m" output onnx "/a:0\x1b[31m" = neg %"x y" from "the \"node\"" Neg
}
# expect:
# graph @"a model" {
# 	input %"x y": f32[2]
# 	%"/a:0\x1b[31m": f32[2] output onnx = neg %"x y" from "the \"node\"" Neg
# }
