# The largest states are offloaded first; what does not fit is passed over for what does.
# run: --passes=optim,fuse,offload --offload state --host-memory 300KiB --optimizer sgdm
# check: state %sgdm.m.a: f32[128,128] host
# check: state %sgdm.m.b: f32[128,256] param
# check: state %sgdm.m.c: f32[128,384] host
graph @f {
	props canon loss bwd
	param %a: f32[128,128]
	param %b: f32[128,256]
	param %c: f32[128,384]
	%z: f32[] = fill {shape=[], value=0}
	%loss output = copy %z
	%da param %a = fill {shape=[128,128], value=1} @backward
	%db param %b = fill {shape=[128,256], value=1} @backward
	%dc param %c = fill {shape=[128,384], value=1} @backward
	loss %loss
}
