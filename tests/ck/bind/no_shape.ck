# An input without a shape needs one.
# run: --passes=bind
# error: input 'x' has no shape; try: --shape x=AxBx...
graph @f {
	input %x: f32[*]
	%y output = neg %x
}
