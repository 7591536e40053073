# A traced loop over the classes that occur had a piece for each that can: it
# is a loop over all.  The fourth class, which no index has, is not one.
# run: --passes=fold
# stderr: note: node 'p0' (split): a loop over nonzero() was traced with all 3 possible elements and always runs for all of them
# check: i64[1,1] = {0}
# check: i64[1,1] = {2}
graph @f {
	param %w: f32[5,3]
	const %depth: i64[] = {4}
	const %off: i64[2] = {0, 1}
	const %zero: i64[] = {0}
	const %ones: i64[3] = {1, 1, 1}
	%best = argmax %w {axis=1, keepdims=0}
	%hot = one_hot %best, %depth, %off {axis=-1}
	%turned = transpose %hot {perm=[1, 0]}
	%n = reduce_sum %turned {axes=[1], keepdims=0}
	%some = gt %n, %zero
	%i = nonzero %some
	%at = transpose %i {perm=[1, 0]}
	%p0 = split %at, %ones {axis=0, index=0, count=3}
	%p2 = split %at, %ones {axis=0, index=2, count=3}
	%first output = identity %p0
	%last output = identity %p2
}
