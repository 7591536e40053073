# The file has a reshape for this batch alone: what a sum over its result is
# for another batch, nobody knows.  Scalars that meet it are told so; where the
# first dim has no name it is a constant like any other.
# run: --passes=bind,fold
# check: extent {dt=f32, value=12, known=0}
# check: %s: f32[4,3] output = mul %x, %n
graph @f {
	input %x: f32[batch=4,3]
	const %to: i64[2] = {2,6}
	%r = reshape %x, %to
	%i = size %r
	%n = cast %i {to=f32}
	%y = reduce_sum %x {axes=[0,1], keepdims=0}
	%z output = div %y, %n
	%s output = mul %x, %n
}
