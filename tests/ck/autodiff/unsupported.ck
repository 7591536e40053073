# All gradients that are missing are reported at once, by op.
# run: --passes=autodiff
# error: gradient of cumsum is not supported
# stderr: node '/a/CumSum'
# stderr: node '/b/CumSum'
# stderr: gradient of softmax_grad is not supported
# stderr: node '/c/SoftmaxGrad'
graph @f {
	param %x: f32[2,4]
	%c = softmax_grad %x, %x from "/c/SoftmaxGrad" SoftmaxGrad
	%a = cumsum %c {axis=0, product=1} from "/a/CumSum" CumSum
	%s = sin %a
	%b = cumsum %s {axis=0, product=1} from "/b/CumSum" CumSum
	%loss output = reduce_sum %b {keepdims=0}
	loss %loss
}
