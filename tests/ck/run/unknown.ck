# An unknown pass is answered with those that there are.
# run: --passes=fold,frob
# error: --passes: there is no pass 'frob'
# error: passes: bind fold canon lora loss frozen precision micro replicate context shard experts autodiff pipeline optim fuse settle weights offload layout plan overlap inplace place account replay
graph @f {
	input %x: f32[2]
}
