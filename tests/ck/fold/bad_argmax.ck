# The largest of no elements does not exist.
# run: --passes=fold
# error: node '/A' (ArgMax): argmax over an empty axis
graph @f {
	const %x: f32[2,0] = {}
	%y output = argmax %x {axis=1} from "/A" ArgMax
}
