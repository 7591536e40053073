# A mask that is repeated as a whole has other elements beside each other than
# one whose elements are: what is selected is taken in its order.
# run: --passes=fold
# check: %i: i64[2,12], %i.count: i64[] = selected %e
# check: bool[] = eq %t
# check: scatter_nd
graph @f {
	input %m: bool[4]
	param %x: f32[3,4]
	param %v: f32[4,3]
	const %extents: i64[2] = {3, 4}
	const %all: i64[1] = {-1}
	%n = nonzero %m
	%p = transpose %n {perm=[1,0]}
	%g = gather_nd %v, %p
	%u = reshape %g, %all
	%e = expand %m, %extents
	%i = nonzero %e
	%at = transpose %i {perm=[1,0]}
	%y: f32[3,4] output = scatter_nd %x, %at, %u
}
