# Constants above the limit, ranges above 64 times that, are not computed; where a shape needs one, it is said.
# run: --passes=fold --fold-limit=100
# error: node '/e' (Expand): operand 1 must be constant: node '/Range' is not folded because its result exceeds 6400 bytes; try: --fold-limit 1MiB
graph @f {
	input %x: f32[4]
	const %shape: i64[1] = {1000}
	const %zero: i64[] = {0}
	const %end: i64[] = {1000}
	const %one: i64[] = {1}
	%z output = constant_of_shape %shape {value=3}
	%r = range %zero, %end, %one from "/Range" Range
	%sum = reduce_sum %r
	%to = reshape %sum, %one
	%y output = expand %x, %sum from "/e" Expand
}
