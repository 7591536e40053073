# A number of results known only at run time: there is room for all of them,
# each stays where it was found, and a sum over them is masked by what finds
# them.
# run: --passes=fold
# check: %i: i64[1,6], %i.count: i64[] = selected %x {compact=0}
# check: bool[6] = cast %x
# check-not: = lt
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
