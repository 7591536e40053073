# Traced with a batch that did not have all classes: the file holds for such
# batches alone.  What would be refused behind it is not told.
# run: --passes=fold
# error: node 'p0' (split): splits a dim of data-dependent size: a loop over nonzero() was traced with a batch that does not reach all elements; for a mixture of experts, export with experts_implementation="batched_mm"
graph @f {
	param %w: f32[5,3]
	const %depth: i64[] = {4}
	const %off: i64[2] = {0, 1}
	const %zero: i64[] = {0}
	const %ones: i64[2] = {1, 1}
	%best = argmax %w {axis=1, keepdims=0}
	%hot = one_hot %best, %depth, %off {axis=-1}
	%turned = transpose %hot {perm=[1, 0]}
	%n = reduce_sum %turned {axes=[1], keepdims=0}
	%some = gt %n, %zero
	%i = nonzero %some
	%at = transpose %i {perm=[1, 0]}
	%p0 = split %at, %ones {axis=0, index=0, count=2}
	%p2 = split %at, %ones {axis=0, index=1, count=2}
	%first output = identity %p0
	%last output = identity %p2
}
