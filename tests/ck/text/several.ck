# A fault ends its line; the next is read.
# run: --passes=none
# error: several.ck:6: expected an element type, found 'f33'
# error: several.ck:8: unknown op 'frob'
graph @f {
	input %x: f33[2]
	input %y: f32[2]
	%z = frob %y
}
