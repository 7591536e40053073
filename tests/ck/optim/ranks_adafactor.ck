# Adafactor's means over a parameter would span ranks.
# run: --passes=optim --optimizer adafactor
# error: Adafactor takes means over all of a parameter, but 'w' is cut over 2 ranks; try: --optimizer adamw
graph @f {
	ranks 2
	props canon loss bwd
	param %b: f32[4] split r
	param %w: f32[4,2] split 1 [4]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%h: f32[2,4] split 0 [4] = fill {shape=[2,4], value=1} @backward
	%db: f32[4] split p param %b = reduce_sum %h {axes=[0], keepdims=0} @backward
	%dw: f32[4,2] split 1 [4] param %w = fill {shape=[4,2], value=1} @backward
	loss %loss
}
