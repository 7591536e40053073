# Switched off, also where its input and its result are both outputs, or its input is the graph's.
# run: --passes=canon --dropout=off
# check: copy %h
# check: copy %x
# check-not: dropout
graph @f {
	input %x: f32[2,4]
	%h output = relu %x
	%d output = dropout %h {ratio=0.5}
	%e output = dropout %x {ratio=0.5}
	%y output = exp %d
}
