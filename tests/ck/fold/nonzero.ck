# A number of results known only at run time is refused.
# run: --passes=fold
# error: node '/nz' (NonZero): the number of results is known only at run time: it depends on the contents of 'x'
graph @f {
	input %x: f32[4]
	%y output = nonzero %x from "/nz" NonZero
}
