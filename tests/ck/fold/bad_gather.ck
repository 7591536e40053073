# A constant index of a value known at run time is checked too.
# run: --passes=fold
# error: node '/G' (Gather): index out of range
graph @f {
	input %x: f32[2,3]
	const %i: i64[] = {3}
	%y output = gather %x, %i {axis=1} from "/G" Gather
}
