# Dumps come after their pass, under a heading, in the order of the run.
# run: --passes=bind,fold,canon --dump=fold,bind
# check-not: after canon
# check: # after bind
# check: graph @f {
# check: # after fold
# check: graph @f {
# check-not: after canon
graph @f {
	input %x: f32[2]
	%y output = neg %x
}
