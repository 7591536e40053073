# ... and the pass that undid it.
# run: --passes=fuse,fold,layout
# error: pass layout must run after fuse, which was undone by fold
graph @f {
	input %x: f32[2]
	%y output = neg %x
}
