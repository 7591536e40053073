# A pass that lacks something names the pass that gives it.
# run: --passes=canon
# error: pass canon needs what fold gives
graph @f {
	input %x: f32[n]
	%y output = neg %x
}
