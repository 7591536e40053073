# A transposition that does not say its axes has no layout.
# run: --passes=layout
# error: pass layout must run after fold
graph @f {
	input %x: f32[2,3]
	%t = transpose %x
	%y: f32[3,2] output = loop %t [
		t0: f32 = neg a0
		give t0
	]
}
