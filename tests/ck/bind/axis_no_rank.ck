# An axis cannot be bound where not even the rank is known.
# run: --passes=bind --dim x.1=3
# error: --dim x.1=3: the rank of input 'x' is unknown; try: --shape x=AxBx...
graph @f {
	input %x: f32[*]
	%y output = neg %x
}
