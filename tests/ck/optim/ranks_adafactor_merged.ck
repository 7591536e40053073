# Where dims were cut as one a rank's piece does not tell rows.
# run: --passes=optim --optimizer adafactor
# error: trained parameter 'w': Adafactor requires a parameter sharded along one dim, found merged dims 0 to 1 sharded as one; try: --optimizer adamw
graph @f {
	ranks 2
	props canon loss bwd
	param %w: f32[1,6] placement 1 [12] from 0
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%dw: f32[1,6] placement 1 [12] param %w = fill {shape=[1,6], value=1} @backward
	loss %loss
}
