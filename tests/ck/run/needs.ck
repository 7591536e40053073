# A pass that lacks something names the pass that gives it.
# run: --passes=canon
# error: pass canon must run after fold
graph @f {
	input %x: f32[n]
	%y output = neg %x
}
