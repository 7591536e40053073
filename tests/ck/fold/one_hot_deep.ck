# A one-hot of more classes than anything may have is refused before any of it
# is written out.
# run: --passes=fold
# error: node '/h' (OneHot): a range of 1000000000000 integers exceeds 268435456 bytes; try: --fold-limit 119210MiB
graph @f {
	input %i: i64[3]
	const %depth: i64[] = {1000000000000}
	const %values: f32[2] = {0, 1}
	%h output = one_hot %i, %depth, %values {axis=1} from "/h" OneHot
}
