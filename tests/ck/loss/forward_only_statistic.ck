# Where nothing is trained, a running statistic stays as it is; what a step would
# make of it is computed if it is wanted, and if not, neither is what it needs.
# run: --passes=loss --forward-only
# check: %m1: f32[3] output = add
# check-not: bn_update
# check-not: %v1
graph @f {
	input %x: f32[4,3]
	buffer %m: f32[3]
	buffer %v: f32[3]
	%y: f32[4,3] output, %mean: f32[3], %var: f32[3] = batchnorm %x
	%m1: f32[3] output = bn_update %m, %mean {momentum=0.75}
	%v1: f32[3] = bn_update %v, %var {momentum=0.75}
}
