# All gradients that are missing are reported at once, by op.
# run: --passes=autodiff
# error: gradient of cumsum is not supported
# stderr: node '/a/CumSum'
# stderr: node '/b/CumSum'
# stderr: gradient of reduce_prod is not supported
# stderr: node '/c/ReduceProd'
graph @f {
	param %x: f32[2,4]
	%c = reduce_prod %x {axes=[1]} from "/c/ReduceProd" ReduceProd
	%a = cumsum %c {axis=0} from "/a/CumSum" CumSum
	%s = sin %a
	%b = cumsum %s {axis=0} from "/b/CumSum" CumSum
	%loss output = reduce_sum %b {keepdims=0}
	loss %loss
}
