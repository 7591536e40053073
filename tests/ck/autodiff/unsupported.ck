# All gradients that are missing are reported at once, by op.
# run: --passes=autodiff
# error: gradient of gelu_grad is not supported
# stderr: node '/a/GeluGrad'
# stderr: node '/b/GeluGrad'
# stderr: gradient of softmax_grad is not supported
# stderr: node '/c/SoftmaxGrad'
graph @f {
	param %x: f32[2,4]
	%c = softmax_grad %x, %x from "/c/SoftmaxGrad" SoftmaxGrad
	%a = gelu_grad %c, %x from "/a/GeluGrad" GeluGrad
	%s = sin %a
	%b = gelu_grad %s, %x from "/b/GeluGrad" GeluGrad
	%loss output = reduce_sum %b {keepdims=0}
	loss %loss
}
