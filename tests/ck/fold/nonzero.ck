# A number of results known only at run time: there is room for all of them,
# and a sum over them is masked.
# run: --passes=fold
# check: %i: i64[1,6], %i.count: i64[] = selected %x
# check: = lt %t
# check: = where %
# check: %s: f32[4] output = reduce_sum
graph @f {
	input %x: f32[6]
	param %p: f32[6,4]
	const %all: i64[1] = {-1}
	%i = nonzero %x
	%r = reshape %i, %all
	%g = gather %p, %r {axis=0}
	%s output = reduce_sum %g {axes=[0], keepdims=0}
}
