# All dims that lack a size are told at once, each with its flag.
# run: --passes=bind
# error: dim 'batch' (axis 0 of input 'ids') is not bound; try: --dim batch=N
# error: dim 'seq' (axis 1 of input 'ids') is not bound; try: --dim seq=N
# error: axis 0 of input 'x' is unknown; try: --dim x.0=N
# error: dim 'a b*2' (axis 2 of input 'x') is not bound; try: --dim 'a b*2=N'
graph @f {
	input %ids: i64[batch,seq]
	input %x: f32[?,seq,"a b*2"]
}
